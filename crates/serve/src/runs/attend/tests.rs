//! A client that takes nothing of what it is told.

use rmcp::handler::server::ServerHandler;
use rmcp::model::{NumberOrString, ProgressToken, RequestId};
use tokio_util::sync::CancellationToken;

use super::*;

struct Handler;

impl ServerHandler for Handler {}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn news_that_nobody_takes_do_not_keep_a_request_from_being_cancelled() {
    let (ours, _theirs) = tokio::io::duplex(1);
    let served = rmcp::service::serve_directly(Handler, tokio::io::split(ours), None);
    let mut context = RequestContext::new(RequestId::Number(1), served.peer().clone());
    let token = ProgressToken(NumberOrString::Number(1));
    context.meta.set_progress_token(token);
    let run = Run::new(HOUR, HOUR, CancellationToken::new()).expect("random bytes");
    let run = Arc::new(run);
    let client = Client::of(&context);
    let mut attendant = Attendant {
        client: &client,
        context: &context,
        wait: HOUR,
        carries: true,
        leaves_long: false,
        told: run.news.follow(),
    };
    for _ in 0..2 {
        run.news.tell("something".to_owned());
    }
    let others = async {
        // The first of the news is on its way by now.
        context.ct.cancel();
        run.token().cancelled().await;
        run.end(Outcome::cancelled_call());
    };
    let both = async { tokio::join!(biased; attendant.attend(&run), others).0 };
    let until = tokio::time::timeout(Duration::from_secs(60), both).await;
    let Ok(Until::Ended(outcome)) = until else {
        panic!("the run did not end with its request");
    };
    assert!(outcome.is_cancelled);
}
