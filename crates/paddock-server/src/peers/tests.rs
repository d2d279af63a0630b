//! Members linked over real sockets on loopback: what arrives, what is noticed, and who is kept out.

mod certificates;
mod delivery;
mod faults;
mod membership;
mod node;
mod processes;
mod proxy;
mod speaker;
mod strangers;
mod tls;
mod tls_strangers;
