//! How long keys are kept, and when they are fetched again.

use bronzeward_core::time::{DbTime, Span};

use super::stub::Stub;
use super::{NOW, Signer, good_claims};
use crate::{BURST, Defect, FRESH, Outage, Provider, REFILL, Refusal, Settings, USABLE};

struct Bench {
    stub: Stub,
    provider: Provider,
    signer: Signer,
}

impl Bench {
    async fn new() -> Self {
        let signer = Signer::new("k1");
        let stub = Stub::with_keys(&[signer.jwk()]).await;
        let provider = Provider::new(Settings::new(stub.issuer.clone(), "bronzeward")).unwrap();
        Self {
            stub,
            provider,
            signer,
        }
    }

    /// The outcome for a token of `signer` that is good at the time it is shown.
    async fn show(&self, signer: &Signer, at: DbTime) -> Result<(), Refusal> {
        let mut claims = good_claims(&self.stub.issuer);
        claims["iat"] = at.as_seconds().into();
        claims["nbf"] = at.as_seconds().into();
        claims["exp"] = (at.as_seconds() + 600).into();
        let token = signer.token(&claims);
        self.provider.verify(&token, at).await.map(drop)
    }

    fn fetches(&self) -> usize {
        self.stub.asked("/jwks")
    }
}

fn after(span: Span) -> DbTime {
    DbTime::from_seconds(NOW) + span
}

const UNKNOWN: Result<(), Refusal> = Err(Refusal::Token(Defect::UnknownKey));

#[tokio::test]
async fn keys_are_fetched_at_the_first_token_and_kept_while_they_are_fresh() {
    let bench = Bench::new().await;
    assert_eq!(bench.fetches(), 0);
    for second in [0, 1, 299] {
        let shown = bench
            .show(&bench.signer, after(Span::seconds(second)))
            .await;
        assert_eq!(shown, Ok(()));
    }
    assert_eq!(bench.fetches(), 1);
    assert_eq!(bench.show(&bench.signer, after(FRESH)).await, Ok(()));
    assert_eq!(bench.fetches(), 2);
    // The database's clock went back, as after a failover.
    let before = DbTime::from_seconds(NOW - 3600);
    assert_eq!(bench.show(&bench.signer, before).await, Ok(()));
    assert_eq!(bench.fetches(), 3);
}

// covers-part: PA-AUTH-2 (a rotation is followed at once, and a withdrawn key in time)
#[tokio::test]
async fn a_rotated_key_is_found_at_its_first_token_and_a_withdrawn_one_ends() {
    let bench = Bench::new().await;
    let next = Signer::new("k2");
    assert_eq!(bench.show(&bench.signer, after(Span::ZERO)).await, Ok(()));
    bench.stub.publish(&[next.jwk()]);
    assert_eq!(bench.show(&next, after(Span::seconds(1))).await, Ok(()));
    assert_eq!(bench.fetches(), 2);
    let withdrawn = bench.show(&bench.signer, after(Span::seconds(2))).await;
    assert_eq!(withdrawn, UNKNOWN);
    // The same identifier with other material is noticed when the keys have aged.
    let same = Signer::new("k2");
    bench.stub.publish(&[same.jwk()]);
    let early = bench.show(&same, after(Span::seconds(3))).await;
    assert_eq!(early, Err(Refusal::Token(Defect::Signature)));
    let later = after(FRESH + Span::seconds(3));
    assert_eq!(bench.show(&same, later).await, Ok(()));
}

#[tokio::test]
async fn tokens_of_unknown_keys_make_few_fetches_and_the_allowance_comes_back() {
    let bench = Bench::new().await;
    let stranger = Signer::new("k9");
    assert_eq!(bench.show(&bench.signer, after(Span::ZERO)).await, Ok(()));
    for _ in 0..20 {
        assert_eq!(bench.show(&stranger, after(Span::ZERO)).await, UNKNOWN);
    }
    assert_eq!(bench.fetches(), 1 + BURST as usize);
    for _ in 0..20 {
        assert_eq!(bench.show(&stranger, after(REFILL)).await, UNKNOWN);
    }
    assert_eq!(bench.fetches(), 2 + BURST as usize);
    assert_eq!(bench.show(&bench.signer, after(REFILL)).await, Ok(()));
}

#[tokio::test]
async fn a_provider_that_is_away_leaves_the_kept_keys_usable_for_an_hour() {
    let bench = Bench::new().await;
    assert_eq!(bench.show(&bench.signer, after(Span::ZERO)).await, Ok(()));
    bench.stub.answers("/jwks", 503, "");
    assert_eq!(bench.show(&bench.signer, after(FRESH)).await, Ok(()));
    // Nobody can tell whether an unknown key is the provider's new one.
    let stranger = bench.show(&Signer::new("k2"), after(FRESH)).await;
    assert_eq!(stranger, Err(Refusal::Unavailable(Outage::Status)));
    let last = bench.show(&bench.signer, after(USABLE)).await;
    assert_eq!(last, Err(Refusal::Unavailable(Outage::Status)));
    bench.stub.publish(&[bench.signer.jwk()]);
    assert_eq!(bench.show(&bench.signer, after(USABLE)).await, Ok(()));
}

#[tokio::test]
async fn requests_that_arrive_together_share_one_fetch() {
    let bench = std::sync::Arc::new(Bench::new().await);
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let bench = bench.clone();
        all.spawn(async move { bench.show(&bench.signer, after(Span::ZERO)).await });
    }
    while let Some(shown) = all.join_next().await {
        assert_eq!(shown.unwrap(), Ok(()));
    }
    assert_eq!(bench.fetches(), 1);
}
