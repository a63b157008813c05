//! What the SDK sees: whole valid messages, and a place for its answers.

use crate::connection::Connection;
use rmcp::RoleServer;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

/// The transport of the SDK.
pub(crate) struct SdkTransport<W> {
    connection: Arc<Connection<W>>,
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
}

impl<W> SdkTransport<W> {
    pub(crate) fn new(
        connection: Arc<Connection<W>>,
        messages: mpsc::Receiver<ClientJsonRpcMessage>,
    ) -> Self {
        Self { connection, messages }
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> Transport<RoleServer> for SdkTransport<W> {
    type Error = Infallible;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let connection = Arc::clone(&self.connection);
        async move {
            match serde_json::to_value(&message) {
                Ok(answer) => connection.answer(answer).await,
                Err(error) => tracing::error!("an answer cannot be written as JSON: {error}"),
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.messages.close();
        Ok(())
    }
}
