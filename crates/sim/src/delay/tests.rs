mod courses;
mod jitter;

use core::time::Duration;

use anabranch_types::Time;

use super::*;

const MS: Duration = Duration::from_millis(1);
