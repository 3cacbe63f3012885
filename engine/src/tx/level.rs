//! The lock order of PA §5 rule 5, as types.
//!
//! A transaction moves down these levels and never back up: `lock_…` exists on
//! `Tx<L>` only where `L: Before<Level>`, so code that takes locks out of order
//! does not compile, also under `cargo check` (PA-TX-5). A level says order, not
//! possession: what was locked is a `Held` value.

/// `Self` comes before `L` in the lock order, so `L` may still be locked.
#[diagnostic::on_unimplemented(
    message = "a transaction at level `{Self}` may no longer lock `{L}`",
    label = "`{L}` comes at or before `{Self}` in the lock order of PA §5 rule 5",
    note = "take the locks in this order: Key, InstallationState, Machines, Heads, Draft, Claims, Principals, Approvals, PlanStates, Operations, Rollout, Acts"
)]
pub trait Before<L>: sealed::Level {}

mod sealed {
    pub trait Level: Send + 'static {}
}

macro_rules! levels {
    ($first:ident $(, $level:ident after $previous:ident)* $(,)?) => {
        /// No lock is held yet.
        #[derive(Debug)]
        pub enum $first {}
        impl sealed::Level for $first {}
        $(
            #[doc = concat!("Every lock of `", stringify!($level), "` that this transaction takes is held.")]
            #[derive(Debug)]
            pub enum $level {}
            impl sealed::Level for $level {}
            impl Before<$level> for $previous {}
            #[diagnostic::do_not_recommend]
            impl<L: Before<$previous>> Before<$level> for L {}
        )*
    };
}

levels!(
    Start,
    Key after Start,
    InstallationState after Key,
    Machines after InstallationState,
    Heads after Machines,
    Draft after Heads,
    Claims after Draft,
    Principals after Claims,
    Approvals after Principals,
    PlanStates after Approvals,
    Operations after PlanStates,
    Rollout after Operations,
);
