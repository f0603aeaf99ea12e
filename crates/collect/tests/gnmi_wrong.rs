//! The gNMI reader against a target that answers wrongly: a gRPC server of bytes, which no proper target would send.

use bytes::Bytes;
use collect::gnmi::{Login, Options, Reader};
use collect::{ReadError, Reader as _};
use h2::SendStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;
use tokio::net::TcpListener;
use units::Time;

/// What the server does after its headers.
enum Answer {
    /// Ends the call with this status.
    Status(u16, &'static str),
    /// Sends these bytes, then this status.
    Data(Vec<u8>, u16),
    /// Sends these bytes, then closes the connection.
    Cut(Vec<u8>),
    /// Sends nothing.
    Silence,
}

/// One call to such a server: the reader's error, and the headers that the server received.
fn call(answer: Answer, login: Option<Login>) -> (ReadError, HeaderMap) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there are descriptors");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (to, headers) = mpsc::channel();
        // only who gets no answer waits for so long
        let timeout = if matches!(answer, Answer::Silence) { Time::from_ms(1500) } else { Time::from_secs(20) };
        let server = tokio::spawn(serve(listener, answer, to));
        let options = Options { login, timeout, ..Options::new("s", address, Time::from_ms(500)) };
        let error = Reader::new(options).read().await.expect_err("no proper answer");
        server.abort();
        (error, headers.try_recv().expect("the call came"))
    })
}

async fn serve(listener: TcpListener, answer: Answer, to: mpsc::Sender<HeaderMap>) {
    let (socket, _) = listener.accept().await.expect("the reader connects");
    let mut connection = h2::server::handshake(socket).await.expect("it speaks HTTP/2");
    let (request, respond) = connection.accept().await.expect("a call comes").expect("it is one");
    assert_eq!(request.uri().path(), "/gnmi.gNMI/Subscribe");
    to.send(request.headers().clone()).expect("the test waits");
    // kept, since dropping it would reset the call
    let _request: Request<h2::RecvStream> = request;
    let cut = matches!(answer, Answer::Cut(_));
    let _stream = respond_with(answer, respond);
    if cut {
        // what was written leaves, and then the connection ends
        let _ = tokio::time::timeout(std::time::Duration::from_millis(100), connection.accept()).await;
        return;
    }
    while connection.accept().await.is_some() {}
}

/// Answers; what it returns is kept as long as the call must not be reset.
fn respond_with(answer: Answer, mut respond: SendResponse<Bytes>) -> Option<SendStream<Bytes>> {
    let headers = || Response::builder().header("content-type", "application/grpc");
    let trailers = |status: u16| {
        HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), http::HeaderValue::from(status))])
    };
    let send = |respond: &mut SendResponse<Bytes>, bytes: Vec<u8>| {
        let mut stream = respond.send_response(headers().body(()).expect("headers"), false).expect("the call is open");
        stream.send_data(bytes.into(), false).expect("the call is open");
        stream
    };
    match answer {
        Answer::Status(status, message) => {
            let headers = headers().header("grpc-status", status).header("grpc-message", message);
            respond.send_response(headers.body(()).expect("headers"), true).expect("the call is open");
        }
        Answer::Data(bytes, status) => {
            send(&mut respond, bytes).send_trailers(trailers(status)).expect("the call is open");
        }
        Answer::Cut(bytes) => return Some(send(&mut respond, bytes)),
        Answer::Silence => std::mem::forget(respond),
    }
    None
}

/// A message as gRPC frames it.
fn framed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

fn login() -> Login {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let file = folder.path().join("login.toml");
    fs::write(&file, "user = \"collector\"\npassword = \"correct horse\"").expect("the folder is ours");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    Login::from_file(&file).expect("it is a login")
}

#[test]
fn user_and_password_go_with_the_call_and_may_be_refused() {
    let (error, headers) = call(Answer::Status(16, "bad password"), Some(login()));
    assert!(matches!(&error, ReadError::Refused(text) if text.contains("bad password; check the user")), "{error}");
    assert_eq!(
        (&headers["username"], &headers["password"]),
        (&"collector".parse().unwrap(), &"correct horse".parse().unwrap())
    );
    println!("{error}");
    let (_, headers) = call(Answer::Status(16, ""), None);
    assert!(!headers.contains_key("password"));
}

#[test]
fn a_password_does_not_leave_this_machine_without_tls() {
    let options = Options { login: Some(login()), ..Options::new("s", "192.0.2.1:9339", Time::from_secs(1)) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there are descriptors");
    let error = runtime.block_on(Reader::new(options).read()).expect_err("it is not sent");
    assert!(matches!(&error, ReadError::Refused(text) if text.contains("through TLS only")), "{error}");
}

#[test]
fn a_refused_subscription_says_what_to_leave_out() {
    for status in [3, 5, 12] {
        let (error, _) = call(Answer::Status(status, "no such path /qos"), None);
        assert!(
            matches!(&error, ReadError::Unsupported(text) if text.contains("/qos") && text.contains("queues = false")),
            "{error}"
        );
        println!("{error}");
    }
}

#[test]
fn what_is_no_message_is_an_error() {
    // field 1 (an update) of 100 bytes, of which 2 come
    let (error, _) = call(Answer::Data(framed(&[0x0a, 100, 1, 2]), 0), None);
    assert!(matches!(error, ReadError::Protocol(_) | ReadError::Closed), "{error}");
    println!("no message: {error}");
    // a message of 4 GB is announced
    let (error, _) = call(Answer::Data(vec![0, 0xff, 0xff, 0xff, 0xff], 0), None);
    assert_eq!(error, ReadError::Beyond { what: "bytes of a message", most: 4 << 20 });
    println!("announced: {error}");
    // a compression that was not agreed
    let (error, _) = call(Answer::Data(vec![1, 0, 0, 0, 0], 0), None);
    println!("compressed: {error}");
    // nothing, and the end
    let (error, _) = call(Answer::Data(Vec::new(), 0), None);
    assert_eq!(error, ReadError::Closed);
    // an error in a message, as older targets send it: unauthenticated
    let (error, _) = call(Answer::Data(framed(&[0x22, 6, 0x08, 16, 0x12, 2, b'n', b'o']), 0), None);
    assert!(matches!(&error, ReadError::Refused(text) if text.starts_with("no;")), "{error}");
    println!("error in a message: {error}");
}

#[test]
fn a_connection_that_ends_within_a_message_is_closed() {
    let (error, _) = call(Answer::Cut(vec![0, 0, 0, 1, 0, 0x0a]), None);
    assert_eq!(error, ReadError::Closed);
}

#[test]
fn a_target_that_never_answers_the_call_is_reported() {
    let (error, _) = call(Answer::Silence, None);
    assert!(matches!(&error, ReadError::Unreachable(text) if text.contains("no answer within 1.5 s")), "{error}");
    println!("{error}");
}

#[test]
fn a_message_without_contents_is_no_sample() {
    let (error, _) = call(Answer::Data([framed(&[]), framed(&[0x18, 1]), framed(&[0x0a, 0])].concat(), 0), None);
    assert_eq!(error, ReadError::Closed);
}
