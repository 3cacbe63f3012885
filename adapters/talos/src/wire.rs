//! The generated messages and clients, each client in a module of its own so that none
//! has another's calls.

#![allow(clippy::all)]

pub mod read {
    pub mod common {
        include!(concat!(env!("OUT_DIR"), "/read/common.rs"));
    }
    pub mod machine {
        include!(concat!(env!("OUT_DIR"), "/read/machine.rs"));
    }
    pub mod cosi {
        pub mod resource {
            include!(concat!(env!("OUT_DIR"), "/read/cosi.resource.rs"));
        }
    }
    pub mod specs {
        include!(concat!(env!("OUT_DIR"), "/read/specs.rs"));
    }
}

pub mod write {
    pub mod common {
        include!(concat!(env!("OUT_DIR"), "/write/common.rs"));
    }
    pub mod machine {
        include!(concat!(env!("OUT_DIR"), "/write/machine.rs"));
    }
}
