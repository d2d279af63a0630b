mod fields;
mod names;
mod values;
pub(crate) mod yaml;
