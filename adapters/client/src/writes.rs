//! The writes: one method per route (PA §9.2). Each carries a key; the caller that
//! lost an answer calls again with the same [`Write`] and the same body.

use bronzeward_api::bodies::approval::Approval;
use bronzeward_api::bodies::cluster::{Cluster, CreateCluster};
use bronzeward_api::bodies::common::Nothing;
use bronzeward_api::bodies::draft::{
    CreateDraft, Draft, DraftUpdate, PutAssignment, PutFragment, PutProfile,
};
use bronzeward_api::bodies::identity::{IdentityRevocation, RevokeIdentity};
use bronzeward_api::bodies::ingestion::{Ingestion, IngestionAccepted, StartIngestion};
use bronzeward_api::bodies::machine::{CreateMachine, Machine, ReplaceTalosEndpoint};
use bronzeward_api::bodies::operation::{
    AccountAttempt, Operation, OperationEntry, TakeOverOperation,
};
use bronzeward_api::bodies::plan::{CreatePlan, Plan};
use bronzeward_api::routes::RouteId;

use crate::{Answer, Client, ClientError, Write};

type Called<T> = Result<Answer<T>, ClientError>;

impl Client {
    /// Records a cluster.
    pub async fn create_cluster(&self, write: &Write, body: &CreateCluster) -> Called<Cluster> {
        self.write(RouteId::CreateCluster, &[], write, Some(body))
            .await
    }

    /// Records a machine of a cluster.
    pub async fn create_machine(&self, write: &Write, body: &CreateMachine) -> Called<Machine> {
        self.write(RouteId::CreateMachine, &[], write, Some(body))
            .await
    }

    /// Replaces a machine's Talos endpoint.
    pub async fn replace_talos_endpoint(
        &self,
        write: &Write,
        machine: &str,
        body: &ReplaceTalosEndpoint,
    ) -> Called<Machine> {
        self.write(RouteId::ReplaceTalosEndpoint, &[machine], write, Some(body))
            .await
    }

    /// Opens a draft.
    pub async fn create_draft(&self, write: &Write, body: &CreateDraft) -> Called<Draft> {
        self.write(RouteId::CreateDraft, &[], write, Some(body))
            .await
    }

    /// Proposes a fragment's content; takes the draft's ETag.
    pub async fn put_fragment(
        &self,
        write: &Write,
        draft: &str,
        name: &str,
        body: &PutFragment,
    ) -> Called<DraftUpdate> {
        self.write(RouteId::PutDraftFragment, &[draft, name], write, Some(body))
            .await
    }

    /// Proposes a fragment's removal; takes the draft's ETag.
    pub async fn remove_fragment(
        &self,
        write: &Write,
        draft: &str,
        name: &str,
    ) -> Called<DraftUpdate> {
        self.write(
            RouteId::RemoveDraftFragment,
            &[draft, name],
            write,
            None::<&Nothing>,
        )
        .await
    }

    /// Proposes a profile's content; takes the draft's ETag.
    pub async fn put_profile(
        &self,
        write: &Write,
        draft: &str,
        name: &str,
        body: &PutProfile,
    ) -> Called<DraftUpdate> {
        self.write(RouteId::PutDraftProfile, &[draft, name], write, Some(body))
            .await
    }

    /// Proposes a profile's removal; takes the draft's ETag.
    pub async fn remove_profile(
        &self,
        write: &Write,
        draft: &str,
        name: &str,
    ) -> Called<DraftUpdate> {
        self.write(
            RouteId::RemoveDraftProfile,
            &[draft, name],
            write,
            None::<&Nothing>,
        )
        .await
    }

    /// Proposes a machine's assignment; takes the draft's ETag.
    pub async fn put_assignment(
        &self,
        write: &Write,
        draft: &str,
        machine: &str,
        body: &PutAssignment,
    ) -> Called<DraftUpdate> {
        self.write(
            RouteId::PutDraftAssignment,
            &[draft, machine],
            write,
            Some(body),
        )
        .await
    }

    /// Proposes an assignment's removal; takes the draft's ETag.
    pub async fn remove_assignment(
        &self,
        write: &Write,
        draft: &str,
        machine: &str,
    ) -> Called<DraftUpdate> {
        self.write(
            RouteId::RemoveDraftAssignment,
            &[draft, machine],
            write,
            None::<&Nothing>,
        )
        .await
    }

    /// Discards a draft; takes its ETag.
    pub async fn discard_draft(&self, write: &Write, draft: &str) -> Called<Draft> {
        self.write(RouteId::DiscardDraft, &[draft], write, Some(&Nothing {}))
            .await
    }

    /// Starts a publication; takes the draft's ETag.
    pub async fn publish_draft(&self, write: &Write, draft: &str) -> Called<Operation> {
        self.write(RouteId::PublishDraft, &[draft], write, Some(&Nothing {}))
            .await
    }

    /// Starts an ingestion; takes the named draft's ETag.
    pub async fn start_ingestion(
        &self,
        write: &Write,
        body: &StartIngestion,
    ) -> Called<IngestionAccepted> {
        self.write(RouteId::StartIngestion, &[], write, Some(body))
            .await
    }

    /// Resumes an interrupted ingestion.
    pub async fn take_over_ingestion(
        &self,
        write: &Write,
        ingestion: &str,
    ) -> Called<IngestionAccepted> {
        self.write(
            RouteId::TakeOverIngestion,
            &[ingestion],
            write,
            Some(&Nothing {}),
        )
        .await
    }

    /// Abandons an ingestion.
    pub async fn abandon_ingestion(&self, write: &Write, ingestion: &str) -> Called<Ingestion> {
        self.write(
            RouteId::AbandonIngestion,
            &[ingestion],
            write,
            Some(&Nothing {}),
        )
        .await
    }

    /// Makes a plan.
    pub async fn create_plan(&self, write: &Write, body: &CreatePlan) -> Called<Plan> {
        self.write(RouteId::CreatePlan, &[], write, Some(body))
            .await
    }

    /// Approves a plan.
    pub async fn approve_plan(&self, write: &Write, plan: &str) -> Called<Approval> {
        self.write(RouteId::ApprovePlan, &[plan], write, Some(&Nothing {}))
            .await
    }

    /// Takes an operation over for the serving controller.
    pub async fn take_over_operation(
        &self,
        write: &Write,
        operation: &str,
        body: &TakeOverOperation,
    ) -> Called<OperationEntry> {
        self.write(RouteId::TakeOverOperation, &[operation], write, Some(body))
            .await
    }

    /// Accounts for an attempt whose answer was lost.
    pub async fn account_attempt(
        &self,
        write: &Write,
        operation: &str,
        attempt: &str,
        body: &AccountAttempt,
    ) -> Called<OperationEntry> {
        self.write(
            RouteId::AccountAttempt,
            &[operation, attempt],
            write,
            Some(body),
        )
        .await
    }

    /// Revokes an identity for good.
    pub async fn revoke_identity(
        &self,
        write: &Write,
        body: &RevokeIdentity,
    ) -> Called<IdentityRevocation> {
        self.write(RouteId::RevokeIdentity, &[], write, Some(body))
            .await
    }
}
