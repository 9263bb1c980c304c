//! A sender's and a receiver's blocks over a channel that loses, repeats and reorders, checked against a model.

mod blind;
mod deficient;
mod fates;
mod matching;
mod model;
mod verdicts;
mod whole;
