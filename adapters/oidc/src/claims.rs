//! The checks of a token's claims, each under a rule of its own (PA §10.1).
//!
//! `lib` calls [`check`] for a token whose signature holds. It is a function of the
//! claims, the settings and the time. Never in this module: I/O, or a claim in a
//! refusal.

use std::collections::BTreeSet;

use bronzeward_core::rules::{Rule, Rules};
use bronzeward_core::time::{DbTime, Span};
use serde_json::{Map, Value};

use crate::{Defect, Settings};

/// How far the issuer's clock and the database's may be apart.
const SKEW: Span = Span::seconds(60);

/// What a verified token says. No Debug: it holds personal data.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenClaims {
    pub iss: String,
    pub sub: String,
    pub groups: BTreeSet<String>,
    /// The display name, if the token carries a usable one (PA §10).
    pub display: Option<String>,
    pub iat: DbTime,
    /// When a stream opened with the token ends.
    pub exp: DbTime,
    pub jti: String,
}

/// Every check in PA §10.1's order; the first that fails names the defect.
pub(crate) fn check<R: Rules>(
    rules: &R,
    settings: &Settings,
    claims: &Map<String, Value>,
    now: DbTime,
) -> Result<TokenClaims, Defect> {
    let require = |rule: Rule, condition: bool, defect: Defect| {
        if rules.holds(rule, condition) {
            Ok(())
        } else {
            Err(defect)
        }
    };
    let text = |name: &str| {
        let text = claims.get(name).and_then(Value::as_str);
        text.filter(|text| !text.is_empty())
    };
    let (exp, iat) = (date(claims.get("exp")), date(claims.get("iat")));
    let not_before = match claims.get("nbf") {
        None => true,
        Some(value) => date(Some(value)).is_some_and(|nbf| nbf - SKEW <= now),
    };
    let lifetime = match (exp, iat) {
        (Some(exp), Some(iat)) => exp - iat <= settings.max_token_lifetime,
        // Without `iat` there is no lifetime; that is the rule about `iat`.
        (Some(_), None) => true,
        (None, _) => false,
    };
    let id_token = claims.contains_key("nonce") || claims.contains_key("at_hash");

    let issuer = claims.get("iss").and_then(Value::as_str);
    require(
        Rule::JwtIssuer,
        issuer == Some(settings.issuer.as_str()),
        Defect::Issuer,
    )?;
    require(
        Rule::JwtAudience,
        audience(claims.get("aud"), &settings.audience),
        Defect::Audience,
    )?;
    require(
        Rule::JwtExpiry,
        exp.is_some_and(|exp| now < exp + SKEW),
        Defect::Expired,
    )?;
    require(Rule::JwtNotBefore, not_before, Defect::NotYetValid)?;
    require(
        Rule::JwtIssuedAtPresent,
        iat.is_some(),
        Defect::IssuedAtMissing,
    )?;
    require(
        Rule::JwtIssuedAtPast,
        iat.is_none_or(|iat| iat <= now + SKEW),
        Defect::IssuedInFuture,
    )?;
    require(Rule::JwtLifetime, lifetime, Defect::Lifetime)?;
    require(Rule::JwtSubject, text("sub").is_some(), Defect::Subject)?;
    require(Rule::JwtNotIdToken, !id_token, Defect::IdToken)?;
    require(
        Rule::JwtIdentifier,
        text("jti").is_some(),
        Defect::Identifier,
    )?;

    Ok(TokenClaims {
        iss: issuer.unwrap_or_default().to_owned(),
        sub: text("sub").unwrap_or_default().to_owned(),
        groups: groups(claims.get(&settings.groups_claim)),
        display: display(claims, settings.display_claim.as_deref()),
        // A missing date is reached here only by a dropped rule.
        iat: iat.unwrap_or(now),
        exp: exp.unwrap_or(now),
        jti: text("jti").unwrap_or_default().to_owned(),
    })
}

/// A NumericDate (RFC 7519 §2), a fraction cut off towards the past.
fn date(value: Option<&Value>) -> Option<DbTime> {
    let number = value?.as_number()?;
    if let Some(seconds) = number.as_i64() {
        return Some(DbTime::from_seconds(seconds));
    }
    let seconds = number.as_f64()?.floor();
    (seconds.abs() < 1e15).then(|| DbTime::from_seconds(seconds as i64))
}

fn audience(claim: Option<&Value>, ours: &str) -> bool {
    match claim {
        Some(Value::String(one)) => one == ours,
        Some(Value::Array(many)) => many.iter().any(|one| one == ours),
        _ => false,
    }
}

/// The groups named; a claim of another shape names none, so it grants nothing.
fn groups(claim: Option<&Value>) -> BTreeSet<String> {
    let listed = claim.and_then(Value::as_array);
    let names = listed.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// A claim that is missing, empty, no string or holds NUL counts as absent.
fn display(claims: &Map<String, Value>, configured: Option<&str>) -> Option<String> {
    let names: &[&str] = match &configured {
        Some(name) => std::slice::from_ref(name),
        None => &["name", "preferred_username"],
    };
    let usable = |name: &&str| {
        let text = claims.get(*name).and_then(Value::as_str);
        text.filter(|text| !text.is_empty() && !text.contains('\0'))
    };
    names.iter().find_map(usable).map(str::to_owned)
}
