//! Tests of what is recorded of a program, and of what the program gets.

mod hostile;
mod passing;
mod played;
mod taped;
