//! Tests of what is recorded of a program, and of what the program gets.

mod hostile;
mod mcp_taped;
mod passing;
mod played;
mod taped;
