//! The lock order of PA §5 rule 5, as types.
//!
//! A transaction moves down these levels and never back up: `lock_…` exists on
//! `Tx<L>` only where `L: Before<Level>`, so code that takes locks out of order
//! does not compile, also under `cargo check` (PA-TX-5). A level says order, not
//! possession: what was locked is a `Held` value.
//!
//! A transaction locks downwards:
//!
//! ```
//! use bronzeward_core::id::{DraftId, MachineId};
//! use bronzeward_engine::ports::store::{LockMode, StoreError, StoreTx};
//! use bronzeward_engine::tx::{Tx, level::InstallationState};
//!
//! async fn act<T: StoreTx>(
//!     tx: Tx<T, InstallationState>,
//!     machine: MachineId,
//!     draft: DraftId,
//! ) -> Result<(), StoreError> {
//!     let (tx, _) = tx.lock_machine(machine, LockMode::Update).await?;
//!     let (tx, _) = tx.lock_draft(draft, LockMode::Update).await?;
//!     let _open = tx.open();
//!     Ok(())
//! }
//! ```
//!
//! The same two locks in the other order do not compile:
//!
//! ```compile_fail,E0277
//! // covers: PA-TX-5
//! use bronzeward_core::id::{DraftId, MachineId};
//! use bronzeward_engine::ports::store::{LockMode, StoreError, StoreTx};
//! use bronzeward_engine::tx::{Tx, level::InstallationState};
//!
//! async fn act<T: StoreTx>(
//!     tx: Tx<T, InstallationState>,
//!     machine: MachineId,
//!     draft: DraftId,
//! ) -> Result<(), StoreError> {
//!     let (tx, _) = tx.lock_draft(draft, LockMode::Update).await?;
//!     let (tx, _) = tx.lock_machine(machine, LockMode::Update).await?;
//!     let _open = tx.open();
//!     Ok(())
//! }
//! ```

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

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_before<A: Before<B>, B>() {}

    /// Two ways to name one function, of which the second exists where the order holds: a
    /// use that leaves the way open compiles only where it does not.
    macro_rules! comes_not_before {
        ($after:ident, $before:ident) => {{
            struct Held;
            impl<T> Ambiguous<()> for T {}
            impl<T: Before<$before>> Ambiguous<Held> for T {}
            trait Ambiguous<Way> {
                fn named() {}
            }
            let _only_one_way = <$after as Ambiguous<_>>::named;
        }};
    }

    macro_rules! every_pair {
        () => {};
        ($first:ident $($later:ident)*) => {
            comes_not_before!($first, $first);
            $(
                comes_before::<$first, $later>();
                comes_not_before!($later, $first);
            )*
            every_pair!($($later)*);
        };
    }

    // Compiling is the test: each pair of levels is ordered one way and not the other.
    #[test]
    fn the_levels_are_in_one_order_and_none_comes_before_itself() {
        every_pair!(Start Key InstallationState Machines Heads Draft Claims Principals
            Approvals PlanStates Operations Rollout);
    }
}
