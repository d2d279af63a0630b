//! A front as its clients see it, request by request.

mod greetings;
mod identities;
mod lists;
mod logins;
mod memory;
mod order;
mod rates;
mod stage;
mod turns;
mod watches;
