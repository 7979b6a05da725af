package iwarp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
)

// A connection over TLS: both ends run MPA, DDP and RDMAP in it, and nobody on the way sees or changes what they say. The
// server also learns who the client is, if its tls.Config asks for that.
func ExampleDialer_tls() {
	ctx := context.Background()
	certificate, roots := exampleCertificate()

	inner, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	secure := tls.NewListener(inner, &tls.Config{Certificates: []tls.Certificate{certificate}})
	ln := iwarp.NewListener(secure, iwarp.ListenConfig{})
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
