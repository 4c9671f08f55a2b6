//! The program knows nothing of these data sets.
