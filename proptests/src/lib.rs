//! Nothing is here: the tests of this package see both sides of the ports, which no
//! shipped crate may. Never in this crate: code that another crate depends on.
