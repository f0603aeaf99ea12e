//! The servers' certificate.

use crate::common::{Made, Nats, now};
use fleet::{Server, renew_certificate};
use std::fs;
use std::process::Command;

/// What openssl says about a certificate, or `None` if it is not installed.
fn openssl(made: &Made, args: &[&str]) -> Option<String> {
    let output = Command::new("openssl").args(args).current_dir(made.join("nats")).output();
    let Ok(output) = output else {
        eprintln!("skipped: openssl is not installed");
        return None;
    };
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_certificate_has_the_servers_names_and_is_signed_by_the_authority() {
    let made = Made::with(1);
    let verify = ["verify", "-CAfile", "ca.pem", "-purpose", "sslserver", "-x509_strict", "server.pem"];
    let Some(said) = openssl(&made, &verify) else { return };
    assert!(said.contains("server.pem: OK"), "{said}");
    let text = openssl(&made, &["x509", "-in", "server.pem", "-noout", "-text"]).unwrap();
    assert!(text.contains("DNS:localhost") && text.contains("IP Address:127.0.0.1"), "{text}");
    assert!(text.contains("prime256v1"), "{text}");
    let within = |days: u64| {
        let seconds = (days * 86_400).to_string();
        openssl(&made, &["x509", "-in", "server.pem", "-noout", "-checkend", &seconds]).unwrap()
    };
    assert!(within(29).contains("will not expire"));
    assert!(within(31).contains("will expire"));
    let before = fs::read(made.join("nats/server.key")).unwrap();
    let servers: Vec<Server> = vec!["new.example".parse().unwrap(), "[2001:db8::1]:5222".parse().unwrap()];
    renew_certificate(&made.path(), &servers, 400, now()).unwrap();
    assert_ne!(fs::read(made.join("nats/server.key")).unwrap(), before);
    let said = openssl(&made, &verify).unwrap();
    assert!(said.contains("server.pem: OK"), "{said}");
    let text = openssl(&made, &["x509", "-in", "server.pem", "-noout", "-text"]).unwrap();
    assert!(text.contains("DNS:new.example") && text.contains("2001:DB8:0:0:0:0:0:1"), "{text}");
    // without names: those that members know
    renew_certificate(&made.path(), &[], 400, now()).unwrap();
    let text = openssl(&made, &["x509", "-in", "server.pem", "-noout", "-text"]).unwrap();
    assert!(text.contains("DNS:localhost"), "{text}");
}

#[test]
fn a_member_connects_to_a_server_with_a_renewed_certificate_and_to_no_strangers() {
    let made = Made::with(1);
    renew_certificate(&made.path(), &[], 10, now()).unwrap();
    let Some(nats) = Nats::start(&made) else { return };
    let stranger = Made::with(1);
    let Some(other) = Nats::start(&stranger) else { return };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let identity = made.oracle().identity;
        nats.join(&identity).await;
        // the right authority, another fleet's account
        let inbox = fleet::rights::inbox(identity.seed.public());
        let refused = other.connect(&identity.creds(), &inbox).await.err().unwrap();
        assert!(refused.contains("AuthorizationViolation"), "{refused}");
        // another fleet's authority
        let refused = other.trusting(&made).connect(&identity.creds(), &inbox).await.err().unwrap();
        assert!(refused.to_lowercase().contains("certificate"), "{refused}");
    });
}
