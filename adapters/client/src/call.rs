//! One request and its answer: the only place that builds and reads HTTP.

use bronzeward_api::bodies::problem::Problem;
use bronzeward_api::routes::RouteId;
use reqwest::header::{AUTHORIZATION, ETAG, HeaderMap, HeaderValue, IF_MATCH, LOCATION};
use reqwest::{RequestBuilder, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Answer, Arrived, Client, ClientError, Write};

type Called<T> = Result<Answer<T>, ClientError>;

impl Client {
    /// A read of a route with its path parameters and query.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        id: RouteId,
        parameters: &[&str],
        query: &[(&str, &str)],
    ) -> Called<T> {
        let request = self.request(id, parameters, query)?;
        self.answer(id, request).await
    }

    /// A write of a route; `None` sends no body (a removal).
    pub(crate) async fn write<B: Serialize, T: DeserializeOwned>(
        &self,
        id: RouteId,
        parameters: &[&str],
        write: &Write,
        body: Option<&B>,
    ) -> Called<T> {
        let mut request = self
            .request(id, parameters, &[])?
            .header("Idempotency-Key", write.key.as_str());
        if let Some(etag) = &write.if_match {
            request = request.header(IF_MATCH, header(etag)?);
        }
        if let Some(epoch) = &write.expected_epoch {
            request = request.header("Bronzeward-Expected-Epoch", header(epoch)?);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        self.answer(id, request).await
    }

    /// The liveness probe, whose answer has no body to read.
    pub(crate) async fn probe(&self) -> Result<(), ClientError> {
        let request = self.anonymous().request(RouteId::Liveness, &[], &[])?;
        let (status, _, _) = self.arrived(RouteId::Liveness, request).await?;
        match status {
            status if status.is_success() => Ok(()),
            status => Err(ClientError::NotUnderstood {
                status: status.as_u16(),
            }),
        }
    }

    fn request(
        &self,
        id: RouteId,
        parameters: &[&str],
        query: &[(&str, &str)],
    ) -> Result<RequestBuilder, ClientError> {
        // Every identifier has its row: a test of the table counts them.
        let route = id.route().ok_or(ClientError::PathParameter)?;
        let mut url = self.address(route.path, parameters)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.http.request(route.method.http(), url);
        if let Some(token) = &self.token {
            let mut value = header(&format!("Bearer {}", token.0))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        Ok(request)
    }

    /// Sends a request and takes its whole answer, which whoever watches sees first.
    async fn arrived(
        &self,
        id: RouteId,
        request: RequestBuilder,
    ) -> Result<(StatusCode, HeaderMap, Vec<u8>), ClientError> {
        let response = request.send().await.map_err(ClientError::transport)?;
        let status = response.status();
        let headers = response.headers().clone();
        let url = response.url().clone();
        let body = response.bytes().await.map_err(ClientError::transport)?;
        let body = body.to_vec();
        if let Some(watch) = &self.watch {
            let route = id.route().ok_or(ClientError::PathParameter)?;
            let path = match url.query() {
                Some(query) => format!("{}?{query}", url.path()),
                None => url.path().to_owned(),
            };
            watch(&Arrived {
                method: route.method.as_str(),
                path: &path,
                status: status.as_u16(),
                headers: &headers,
                body: &body,
            });
        }
        Ok((status, headers, body))
    }

    async fn answer<T: DeserializeOwned>(&self, id: RouteId, request: RequestBuilder) -> Called<T> {
        let (status, headers, body) = self.arrived(id, request).await?;
        read(status, &headers, &body)
    }

    /// The route's path below the base, each parameter as one segment.
    fn address(&self, path: &str, parameters: &[&str]) -> Result<Url, ClientError> {
        let mut url = self.base.clone();
        let mut given = parameters.iter();
        {
            let mut segments = url
                .path_segments_mut()
                .map_err(|()| ClientError::BaseAddress)?;
            segments.pop_if_empty();
            for part in path.split('/').skip(1) {
                if !part.starts_with('{') {
                    segments.push(part);
                    continue;
                }
                let parameter = given.next().ok_or(ClientError::PathParameter)?;
                // A URL parser takes these for steps, not for names.
                if matches!(*parameter, "" | "." | "..") {
                    return Err(ClientError::PathParameter);
                }
                segments.push(parameter);
            }
        }
        match given.next() {
            None => Ok(url),
            Some(_) => Err(ClientError::PathParameter),
        }
    }
}

fn header(value: &str) -> Result<HeaderValue, ClientError> {
    HeaderValue::from_str(value).map_err(|_| ClientError::Header)
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn read<T: DeserializeOwned>(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Called<T> {
    let epoch = text(headers, "Bronzeward-Epoch");
    let not_understood = ClientError::NotUnderstood {
        status: status.as_u16(),
    };
    if !status.is_success() {
        return match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => Err(ClientError::Problem {
                problem: Box::new(problem),
                epoch,
            }),
            Err(_) => Err(not_understood),
        };
    }
    // serde's own message would quote the body.
    let body = serde_json::from_slice(body).map_err(|_| not_understood)?;
    Ok(Answer {
        body,
        status: status.as_u16(),
        etag: text(headers, ETAG.as_str()),
        location: text(headers, LOCATION.as_str()),
        epoch,
        recovery_mode: text(headers, "Bronzeward-Recovery-Mode").as_deref() == Some("true"),
        request_id: text(headers, "Bronzeward-Request-ID"),
        replayed: text(headers, "Idempotent-Replayed").as_deref() == Some("true"),
    })
}
