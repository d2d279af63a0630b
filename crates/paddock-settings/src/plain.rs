//! Values that need no form of their own: numbers and flags.

use std::fmt;

/// A number or a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainValue {
    /// A number as files have it. A larger one is shown as the largest.
    Number(i64),
    /// True or false.
    Flag(bool),
}

impl fmt::Display for PlainValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlainValue::Number(number) => number.fmt(f),
            PlainValue::Flag(flag) => flag.fmt(f),
        }
    }
}

/// The type of a field that is a number or a flag.
pub trait PlainType: Sized {
    /// The value for a file.
    fn to_plain(&self) -> PlainValue;
    /// The value from a file; `None` for one that the type does not hold.
    fn of_plain(value: PlainValue) -> Option<Self>;
}

impl PlainType for bool {
    fn to_plain(&self) -> PlainValue {
        PlainValue::Flag(*self)
    }

    fn of_plain(value: PlainValue) -> Option<bool> {
        match value {
            PlainValue::Flag(flag) => Some(flag),
            PlainValue::Number(_) => None,
        }
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl PlainType for $type {
            fn to_plain(&self) -> PlainValue {
                PlainValue::Number(i64::try_from(*self).unwrap_or(i64::MAX))
            }

            fn of_plain(value: PlainValue) -> Option<$type> {
                match value {
                    PlainValue::Number(number) => number.try_into().ok(),
                    PlainValue::Flag(_) => None,
                }
            }
        })*
    };
}

numbers!(i32 u32 u64 usize);
