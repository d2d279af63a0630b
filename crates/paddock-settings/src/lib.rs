//! Settings as rows. A struct that is declared by [`settings!`] says of each field, once, its name in Paddock's own file, its default, its
//! unit, its range, the time at which a new value counts, and a text about it.
//!
//! From the row come the field, `Default`, the parsing of numbers and flags, their showing, the comparison when settings are read again, and
//! the line in `docs/configuration.md`. Files and values with a form of their own are left to `paddock-config`.

mod plain;
mod row;

pub use plain::{PlainType, PlainValue};
pub use row::{ConfigChanges, SettingForm, SettingRow};

/// A time is told to clients as 32 bits with a sign, and so is every time that one is made of.
pub const MILLISECONDS_MAX: i64 = i32::MAX as i64;
/// Largest number of things in memory.
pub const COUNT_MAX: i64 = i32::MAX as i64;

/// A struct of settings, with the parts in it.
pub trait SettingRows {
    /// Adds the rows, in the order of the fields.
    fn add_rows(rows: &mut Vec<SettingRow>);
    /// The number or flag of this key.
    fn plain(&self, key: &str) -> Option<PlainValue>;
    /// Sets the number or flag of this key. False if there is none, or if the value is none that its type holds.
    fn set_plain(&mut self, key: &str, value: PlainValue) -> bool;
    /// Takes over those settings of `wanted` that count while the process runs, and names those that differ.
    fn take_over(&mut self, wanted: &Self, changes: &mut ConfigChanges);

    /// All rows.
    fn rows() -> Vec<SettingRow> {
        let mut rows = Vec::new();
        Self::add_rows(&mut rows);
        rows
    }
}

/// Declares a struct of settings: `field: Type = default, kind, time;`, with the text about it as its comment.
///
/// Kinds:
/// - `number("unit", 1..=9)`, with `, multiple_of 3` or `, default "text for readers"` behind it;
/// - `flag`;
/// - `form("unit", "default")`, both for readers: a value that `paddock-config` reads and shows;
/// - `part`: a struct of settings, whose rows are rows of this one;
/// - `section`: a table of its own in the file, or no setting of a file. It has no row.
///
/// Times at which a new value counts: `while_running`, `at_restart`, and `elsewhere` where this is decided by hand.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $about:literal])+
                $field:ident $([$key:literal])?: $type:ty = $default:expr,
                $kind:ident $(($($detail:tt)*))?, $time:ident;
            )*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[doc = $about])+ $vis $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* }
            }
        }

        // For the programs that read files of settings.
        #[doc(hidden)]
        impl $crate::SettingRows for $name {
            fn add_rows(rows: &mut Vec<$crate::SettingRow>) {
                let defaults = <$name>::default();
                $($crate::add_row!(
                    $kind; rows; defaults.$field; $type; $crate::key_of!($field $([$key])?); concat!($($about),+); $time;
                    $($($detail)*)?
                );)*
            }

            fn plain(&self, key: &str) -> Option<$crate::PlainValue> {
                $($crate::get_plain!($kind; self.$field; key; $crate::key_of!($field $([$key])?));)*
                None
            }

            fn set_plain(&mut self, key: &str, value: $crate::PlainValue) -> bool {
                $($crate::set_plain!($kind; self.$field; key; value; $crate::key_of!($field $([$key])?));)*
                false
            }

            fn take_over(&mut self, wanted: &$name, changes: &mut $crate::ConfigChanges) {
                $($crate::take_field!(
                    $kind; $time; self.$field; wanted.$field; changes; $crate::key_of!($field $([$key])?)
                );)*
            }
        }
    };
}

/// Name of a field in Paddock's own file.
#[doc(hidden)]
#[macro_export]
macro_rules! key_of {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident [$key:literal]) => {
        $key
    };
}

/// Adds the row of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! add_row {
    (part; $rows:expr; $default:expr; $type:ty; $key:expr; $about:expr; $time:ident;) => {
        <$type as $crate::SettingRows>::add_rows($rows);
    };
    (section; $rows:expr; $default:expr; $type:ty; $key:expr; $about:expr; $time:ident;) => {};
    (flag; $rows:expr; $default:expr; $type:ty; $key:expr; $about:expr; $time:ident;) => {
        $crate::add_row!(@ $rows; $key; $about; $time; $crate::SettingForm::Flag; $crate::PlainType::to_plain(&$default).to_string());
    };
    (form; $rows:expr; $default:expr; $type:ty; $key:expr; $about:expr; $time:ident; $unit:literal, $told:literal) => {
        $crate::add_row!(@ $rows; $key; $about; $time; $crate::SettingForm::Other($unit); $told.to_owned());
    };
    (number; $rows:expr; $default:expr; $type:ty; $key:expr; $about:expr; $time:ident; $unit:literal, $range:expr) => {
        $crate::add_row!(@ $rows; $key; $about; $time; $crate::SettingForm::number($unit, $range, 1);
            $crate::PlainType::to_plain(&$default).to_string());
    };
    (
        number; $rows:expr; $default:expr; $type:ty; $key:expr; $about:expr; $time:ident; $unit:literal, $range:expr,
        multiple_of $step:expr
    ) => {
        $crate::add_row!(@ $rows; $key; $about; $time; $crate::SettingForm::number($unit, $range, $step);
            $crate::PlainType::to_plain(&$default).to_string());
    };
    (
        number; $rows:expr; $default:expr; $type:ty; $key:expr; $about:expr; $time:ident; $unit:literal, $range:expr,
        default $told:literal
    ) => {
        $crate::add_row!(@ $rows; $key; $about; $time; $crate::SettingForm::number($unit, $range, 1); $told.to_owned());
    };
    (@ $rows:expr; $key:expr; $about:expr; $time:ident; $form:expr; $default:expr) => {
        $rows.push($crate::SettingRow {
            key: $key,
            form: $form,
            default: $default,
            is_taken_while_running: stringify!($time) == "while_running",
            about: $about.trim_start(),
        })
    };
}

/// Returns the value of a field, if it is the number or flag of a key.
#[doc(hidden)]
#[macro_export]
macro_rules! get_plain {
    (part; $field:expr; $key:expr; $own:expr) => {
        if let Some(value) = $crate::SettingRows::plain(&$field, $key) {
            return Some(value);
        }
    };
    (section; $field:expr; $key:expr; $own:expr) => {};
    (form; $field:expr; $key:expr; $own:expr) => {};
    ($kind:ident; $field:expr; $key:expr; $own:expr) => {
        if $key == $own {
            return Some($crate::PlainType::to_plain(&$field));
        }
    };
}

/// Sets a field and returns, if it is the number or flag of a key.
#[doc(hidden)]
#[macro_export]
macro_rules! set_plain {
    (part; $field:expr; $key:expr; $value:expr; $own:expr) => {
        if $crate::SettingRows::set_plain(&mut $field, $key, $value) {
            return true;
        }
    };
    (section; $field:expr; $key:expr; $value:expr; $own:expr) => {};
    (form; $field:expr; $key:expr; $value:expr; $own:expr) => {};
    ($kind:ident; $field:expr; $key:expr; $value:expr; $own:expr) => {
        if $key == $own {
            let value = $crate::PlainType::of_plain($value);
            let is_one = value.is_some();
            if let Some(value) = value {
                $field = value;
            }
            return is_one;
        }
    };
}

/// Compares a field with the one that is wanted.
#[doc(hidden)]
#[macro_export]
macro_rules! take_field {
    (part; $time:ident; $now:expr; $wanted:expr; $changes:expr; $key:expr) => {
        $crate::SettingRows::take_over(&mut $now, &$wanted, $changes)
    };
    ($kind:ident; elsewhere; $now:expr; $wanted:expr; $changes:expr; $key:expr) => {};
    ($kind:ident; while_running; $now:expr; $wanted:expr; $changes:expr; $key:expr) => {
        if $now != $wanted {
            $now = $wanted.clone();
            $changes.taken.push($key);
        }
    };
    ($kind:ident; at_restart; $now:expr; $wanted:expr; $changes:expr; $key:expr) => {
        if $now != $wanted {
            $changes.need_restart.push($key);
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    settings! {
        /// A part.
        #[derive(Clone, Debug, PartialEq, Eq)]
        struct Inner {
            /// Length of a thing.
            length ["inner_length"]: u64 = 7, number("metres", 1..=9), while_running;
        }
    }

    settings! {
        /// Settings of a test.
        #[derive(Clone, Debug, PartialEq, Eq)]
        struct Outer {
            /// Number of things,
            /// in two lines.
            things: u32 = 4, number("things", 0..=8, multiple_of 2), at_restart;
            /// True if there is one.
            has_one: bool = false, flag, while_running;
            /// Name of the thing.
            name: String = "a".to_owned(), form("text", "\"a\""), at_restart;
            /// The part.
            inner: Inner = Inner::default(), part, elsewhere;
            /// No setting of a file.
            hidden: bool = false, section, elsewhere;
        }
    }

    #[test]
    fn rows_say_what_the_fields_are() {
        let rows = Outer::rows();
        let keys: Vec<&str> = rows.iter().map(|row| row.key).collect();
        assert_eq!(keys, ["things", "has_one", "name", "inner_length"]);
        assert_eq!(rows[0].form, SettingForm::Number { unit: "things", min: 0, max: 8, multiple_of: 2 });
        assert_eq!((rows[0].about, rows[0].default.as_str()), ("Number of things, in two lines.", "4"));
        let taken: Vec<bool> = rows.iter().map(|row| row.is_taken_while_running).collect();
        assert_eq!(taken, [false, true, false, true]);
        assert_eq!(rows[2].default, "\"a\"");
    }

    #[test]
    fn numbers_and_flags_are_set_by_their_keys() {
        let mut outer = Outer::default();
        assert!(outer.set_plain("things", PlainValue::Number(6)));
        assert!(outer.set_plain("has_one", PlainValue::Flag(true)));
        assert!(outer.set_plain("inner_length", PlainValue::Number(9)));
        for (key, value) in [
            ("things", PlainValue::Number(-1)),
            ("things", PlainValue::Flag(true)),
            ("name", PlainValue::Number(1)),
            ("length", PlainValue::Number(1)),
            ("hidden", PlainValue::Flag(true)),
        ] {
            assert!(!outer.set_plain(key, value), "{key}");
        }
        let inner = Inner { length: 9 };
        let expected = Outer { things: 6, has_one: true, inner, ..Outer::default() };
        assert_eq!(outer, expected);
        assert_eq!(outer.plain("inner_length"), Some(PlainValue::Number(9)));
        assert_eq!((outer.plain("name"), outer.plain("hidden")), (None, None));
    }

    #[test]
    fn what_may_change_is_taken_and_the_rest_is_named() {
        let inner = Inner { length: 1 };
        let wanted = Outer { things: 2, has_one: true, name: "b".to_owned(), inner, hidden: true };
        let (mut now, mut changes) = (Outer::default(), ConfigChanges::default());
        now.take_over(&wanted, &mut changes);
        assert_eq!(changes.taken, ["has_one", "inner_length"]);
        assert_eq!(changes.need_restart, ["things", "name"]);
        let taken = Outer { has_one: true, inner: Inner { length: 1 }, ..Outer::default() };
        assert_eq!(now, taken);
    }
}
