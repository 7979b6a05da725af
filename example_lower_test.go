package iwarp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"math/big"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/usertcp"
)

// serveWrites accepts one connection, whose peer may write into memory here, and sends what there is when
// the connection has ended.
func serveWrites(ctx context.Context, ln *iwarp.Listener) (offered iwarp.Remote, written <-chan string) {
	pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	if err != nil {
		log.Fatal(err)
	}
	mr, err := pd.Register(make([]byte, 16), iwarp.RemoteWrite)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan string)
	go func() {
		req, err := ln.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		qp, err := req.Accept(ctx, iwarp.AcceptConfig{PD: pd})
		if err != nil {
			log.Fatal(err)
		}
		<-qp.Done()
		_ = qp.Close()
		done <- string(mr.Bytes())
	}()
	return mr.Remote(0), done
}

// write connects, writes into the peer's memory, and closes.
func write(ctx context.Context, d *iwarp.Dialer, network, addr, text string, to iwarp.Remote) {
	qp, err := d.Dial(ctx, network, addr)
	if err != nil {
		log.Fatal(err)
	}
	mr, err := qp.PD().Register([]byte(text), iwarp.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := qp.Write(ctx, mr.Slice(0, len(text)), to); err != nil {
		log.Fatal(err)
	}
	if err := qp.Close(); err != nil {
		log.Fatal(err)
	}
}

// Package iwarpsctp has a network with the same verbs over SCTP in UDP. One Network serves any number of Dialers and Listeners.
func ExampleDialer_sctp() {
	ctx := context.Background()
	sctp := new(iwarpsctp.Network)
	ln, err := (&iwarp.ListenConfig{Network: sctp}).Listen(ctx, "sctp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	memory, written := serveWrites(ctx, ln)
	write(ctx, &iwarp.Dialer{Network: sctp}, "sctp", ln.Addr().String(), "placed over SCTP", memory)
	fmt.Println(<-written)
	// Output: placed over SCTP
}

// Two stacks of a TCP that is aware of MPA, each at one end of a link in memory. The one at a program's network
// has a link from usertcp.OpenTUN instead.
func ExampleDialer_stack() {
	ctx := context.Background()
	here, there, err := usertcp.Pair(usertcp.Config{}, usertcp.Path{}, usertcp.Path{})
	if err != nil {
		log.Fatal(err)
	}
	defer here.Close()
	defer there.Close()
	ln, err := (&iwarp.ListenConfig{Stack: there}).Listen(ctx, "tcp", "192.0.2.2:7471")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	memory, written := serveWrites(ctx, ln)
	write(ctx, &iwarp.Dialer{Stack: here}, "tcp", "192.0.2.2:7471", "placed by a TCP.", memory)
	fmt.Println(<-written)
	// Output: placed by a TCP.
}

// A connection over TLS: both ends run MPA, DDP and RDMAP in it, and nobody on the way sees or changes what they say. The
// server also learns who the client is, if its tls.Config asks for that.
func ExampleDialer_tls() {
	ctx := context.Background()
	certificate, roots := exampleCertificate()

	inner, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	secure := tls.NewListener(inner, &tls.Config{Certificates: []tls.Certificate{certificate}})
	ln := new(iwarp.ListenConfig).NewListener(secure)
	defer ln.Close()
	memory, written := serveWrites(ctx, ln)

	d := iwarp.Dialer{Wrap: func(conn net.Conn) (net.Conn, error) {
		secure := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "storage.example"})
		return secure, secure.HandshakeContext(ctx)
	}}
	write(ctx, &d, "tcp", ln.Addr().String(), "nobody else sees", memory)
	fmt.Println(<-written)
	// Output: nobody else sees
}

// exampleCertificate makes what comes from a file in a real program: the server's certificate, and what its clients trust.
func exampleCertificate() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"storage.example"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	check(err)
	parsed, err := x509.ParseCertificate(der)
	check(err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
