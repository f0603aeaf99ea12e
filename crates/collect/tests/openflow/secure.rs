//! TLS in both directions.

use crate::lab::Lab;
use crate::{anybody_here, read_until, reads};
use collect::openflow::{Error, Listener, OpenFlow, Settings, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use testkit::PATIENCE;
use tokio::time::{Instant, sleep};

/// Files of an authority and of what it issued: a switch's and a controller's certificates and keys.
struct Authority<'a> {
    lab: &'a Lab,
    name: &'static str,
}

impl Authority<'_> {
    fn new<'a>(lab: &'a Lab, name: &'static str) -> Authority<'a> {
        let mut parameters = CertificateParams::new([]).expect("no names");
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("there are random numbers");
        let issuer = CertifiedIssuer::self_signed(parameters, key).expect("it can sign");
        let authority = Authority { lab, name };
        fs::write(authority.file("ca.pem"), issuer.pem()).expect("there is room");
        for end in ["switch", "controller"] {
            let key = KeyPair::generate().expect("there are random numbers");
            let mut parameters = CertificateParams::new([end.to_string()]).expect("a name");
            parameters.distinguished_name.push(DnType::CommonName, end);
            let certificate = parameters.signed_by(&key, &issuer).expect("it can sign");
            fs::write(authority.file(&format!("{end}.pem")), certificate.pem()).expect("there is room");
            fs::write(authority.file(&format!("{end}.key")), key.serialize_pem()).expect("there is room");
        }
        authority
    }

    fn file(&self, name: &str) -> PathBuf {
        self.lab.switches.file(&format!("{}-{name}", self.name))
    }

    fn controller(&self) -> Tls {
        let [ca, certificate, key] = ["ca.pem", "controller.pem", "controller.key"].map(|name| self.file(name));
        Tls::from_files(&ca, &certificate, &key).expect("the files are right")
    }
}

#[test]
fn switches_are_read_over_tls_and_only_with_the_authoritys_certificates() {
    let Some(lab) = Lab::new() else { return };
    let [ours, strange] = ["ours", "strange"].map(|name| Authority::new(&lab, name));
    let [key, certificate, ca] =
        ["switch.key", "switch.pem", "ca.pem"].map(|name| ours.file(name).display().to_string());
    lab.switches.vsctl(&format!("set-ssl {key} {certificate} {ca}"));
    lab.switches.vsctl("set-controller sw1 pssl:6655");
    lab.run(async || {
        let address = "127.0.0.1:6655".to_string();
        let mut switch = OpenFlow::connect(reads("sw1"), address.clone(), Some(ours.controller()));
        let found = read_until(&mut switch, "it answers over TLS", |_| true).await;
        assert_eq!(found.ports.len(), 2);
        let hasty = Settings { timeout: Duration::from_secs(2), ..reads("sw1") };
        let mut stranger = OpenFlow::connect(hasty.clone(), address.clone(), Some(strange.controller()));
        let began = Instant::now();
        let refused = loop {
            match stranger.read().await {
                // not within its two seconds
                Err(Error::Connect { .. } | Error::Timeout { .. }) if began.elapsed() < PATIENCE => {}
                refused => break refused,
            }
        };
        assert!(matches!(&refused, Err(Error::Tls { why }) if why.contains("certificate")), "{refused:?}");
        let mut plain = OpenFlow::connect(hasty.clone(), address, None);
        assert!(plain.read().await.is_err(), "without TLS");

        let loopback = "127.0.0.1:0".parse().expect("an address");
        let listener = Listener::bind(loopback, Some(ours.controller())).await.expect("it is free");
        let mut switch = OpenFlow::listen(reads("sw2"), &listener, anybody_here());
        lab.switches.vsctl(&format!("set-controller sw2 ssl:{}", listener.address()));
        read_until(&mut switch, "it connects over TLS", |_| true).await;
        let listener = Listener::bind(loopback, Some(strange.controller())).await.expect("it is free");
        let mut switch = OpenFlow::listen(hasty, &listener, anybody_here());
        lab.switches.vsctl(&format!("set-controller sw2 ssl:{}", listener.address()));
        // the switch tries again after pauses of some seconds
        let began = Instant::now();
        while listener.refused() == 0 {
            assert!(began.elapsed() < PATIENCE, "it tries to connect");
            sleep(Duration::from_millis(20)).await;
        }
        assert!(matches!(switch.read().await, Err(Error::NotConnected { .. })));
    });
}

#[test]
fn certificates_of_ovs_pki_are_taken() {
    let Some(lab) = Lab::new() else { return };
    let pki = |arguments: &str| {
        let [folder, log] = ["pki", "pki.log"].map(|name| lab.switches.file(name).display().to_string());
        let mut command = Command::new("ovs-pki");
        command.args([format!("--dir={folder}"), format!("--log={log}")]).args(arguments.split_whitespace());
        command.current_dir(lab.switches.file("")).output()
    };
    if let Err(error) = pki("init") {
        eprintln!("skipped: ovs-pki: {error} (apt-get install openvswitch-common)");
        return;
    }
    for (name, kind) in [("sc", "switch"), ("ctl", "controller")] {
        let made = pki(&format!("req+sign {name} {kind}")).expect("it is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let file = |name: &str| lab.switches.file(name);
    let [key, certificate] = ["sc-privkey.pem", "sc-cert.pem"].map(|name| file(name).display().to_string());
    lab.switches.vsctl(&format!("set-ssl {key} {certificate} {}", file("pki/controllerca/cacert.pem").display()));
    lab.switches.vsctl("set-controller sw1 pssl:6655");
    let tls = Tls::from_files(&file("pki/switchca/cacert.pem"), &file("ctl-cert.pem"), &file("ctl-privkey.pem"));
    let tls = tls.expect("the files are right");
    lab.run(async || {
        let mut switch = OpenFlow::connect(reads("sw1"), "127.0.0.1:6655".to_string(), Some(tls));
        read_until(&mut switch, "it answers over TLS", |_| true).await;
    });
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let place = tempfile::tempdir().expect("there is room");
    let [missing, text] = ["missing.pem", "text.pem"].map(|name| place.path().join(name));
    fs::write(&text, "no certificate\n").expect("there is room");
    for file in [&missing, &text] {
        let Err(Error::Tls { why }) = Tls::from_files(file, file, file) else { panic!("{}", file.display()) };
        assert!(why.contains(&file.display().to_string()), "{why}");
    }
}
