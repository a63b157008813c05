//! Notifications by mail.
//!
//! The address of the server is judged here and dialled as it was judged; its certificate is
//! verified for the name.

use super::notice::Notice;
use crate::addresses::For;
use crate::outbound::rule::Terms;
use crate::outbound::sender::{NotSent, failed, judged};
use crate::tasks::blocking;
use lettre::message::{Mailbox, header::ContentType};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use std::net::{IpAddr, SocketAddr};
use svc_domain::notification::address::{Mail, Security};
use tokio::time::timeout;

/// A mail server, and who writes to whom.
///
/// Has no debug form: it may hold a password.
pub(super) struct Mailer {
    mail: Mail,
    terms: Terms,
}

impl Mailer {
    pub fn new(mail: Mail, terms: Terms) -> Self {
        Self { mail, terms }
    }

    /// Hands one message to the server. Returns its code.
    pub async fn send(&self, notice: &Notice) -> Result<u16, NotSent> {
        let longest = self.terms.timeout();
        match timeout(longest, self.send_now(notice)).await {
            Ok(done) => done,
            Err(_) => Err(NotSent::TooSlow(longest.as_secs_f64())),
        }
    }

    async fn send_now(&self, notice: &Notice) -> Result<u16, NotSent> {
        let message = self.message(notice)?;
        let address = self.address().await?;
        let tls = match self.mail.security {
            Security::Plain => Tls::None,
            Security::StartTls => Tls::Required(self.parameters().await?),
            Security::Tls => Tls::Wrapper(self.parameters().await?),
        };
        let builder =
            AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(address.ip().to_string());
        let builder = builder.port(address.port()).tls(tls).timeout(Some(self.terms.timeout()));
        let builder = match &self.mail.login {
            Some((user, password)) => {
                builder.credentials(Credentials::new(user.clone(), password.clone()))
            }
            None => builder,
        };
        let sent = builder.build::<Tokio1Executor>().send(message).await;
        let response = sent.map_err(|error| failed(&error))?;
        Ok(u16::from(response.code()))
    }

    fn message(&self, notice: &Notice) -> Result<Message, NotSent> {
        let mailbox = |text: &str| {
            text.parse::<Mailbox>().map_err(|_| {
                NotSent::Failed("the entry names an address that is no mailbox".to_owned())
            })
        };
        let mut builder = Message::builder()
            .from(mailbox(&self.mail.from)?)
            .subject(format!("svc: {}", notice.text.title))
            .message_id(Some(format!("<{}@svc.invalid>", notice.delivery)))
            .header(ContentType::TEXT_PLAIN);
        for to in &self.mail.to {
            builder = builder.to(mailbox(to)?);
        }
        builder.body(format!("{}\n", notice.text.body)).map_err(|error| failed(&error))
    }

    /// The first address of the server; all of them are allowed.
    async fn address(&self) -> Result<SocketAddr, NotSent> {
        let (host, port) = (self.mail.host.as_str(), self.mail.port);
        if let Ok(address) = host.parse::<IpAddr>() {
            self.terms.rule().judge(address, port)?;
            return Ok(SocketAddr::new(address, port));
        }
        let found = judged(self.terms.rule(), host, port).await.map_err(|error| failed(&*error))?;
        let first = found.first().copied();
        let first = first.ok_or_else(|| NotSent::Failed("its host has no address".to_owned()))?;
        Ok(For::Webhook.dialled(SocketAddr::new(first, port)))
    }

    async fn parameters(&self) -> Result<TlsParameters, NotSent> {
        let host = self.mail.host.clone();
        // Reads the certificates of this machine.
        let made = blocking(move || TlsParameters::new_rustls(host)).await;
        let made = made.map_err(|error| NotSent::Failed(error.message))?;
        made.map_err(|error| failed(&error))
    }
}
