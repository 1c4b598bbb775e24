package command

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubectl/internal/command/frame"
)

// certified makes a self-signed certificate for 127.0.0.1, valid from and until
// these durations from now.
func certified(t *testing.T, from, until time.Duration) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             now.Add(from),
		NotAfter:              now.Add(until),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pair.pem")
	both := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
	if err := os.WriteFile(path, both, 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

// What is wrong with a certificate, the server's or the user's, is reported.
func TestCertificatesOutOfTime(t *testing.T) {
	const year = 365 * 24 * time.Hour
	good, goodFile := certified(t, -time.Hour, year)
	expired, expiredFile := certified(t, -2*year, -year)
	early, earlyFile := certified(t, year, 2*year)
	_, strangerFile := certified(t, -time.Hour, year)
	for _, c := range []struct {
		name   string
		server tls.Certificate
		trust  string // the CA that the user trusts
		user   string // the user's certificate
		want   string
	}{
		{"server expired", expired, expiredFile, goodFile, "certificate has expired or is not yet valid"},
		{"server not yet", early, earlyFile, goodFile, "check this machine's clock; kctl doctor"},
		{"server unknown", good, strangerFile, goodFile, "certificate signed by unknown authority"},
		{"user expired", good, goodFile, expiredFile, " expired at "},
		{"user unknown", good, goodFile, strangerFile, "certificate"},
		{"user without key", good, goodFile, "", "certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			known := x509.NewCertPool()
			for _, file := range []string{goodFile, expiredFile} {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				known.AppendCertsFromPEM(text)
			}
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{c.server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known}
			server.StartTLS()
			t.Cleanup(server.Close)
			for _, args := range [][]string{{"get", "pods"}, {"run", "x", "--image=x"}, {"logs", "x"}} {
				args = append(args, "--certificate-authority="+c.trust)
				if c.user != "" {
					args = append(args, "--client-certificate="+c.user, "--client-key="+c.user)
				}
				kctl(t, server.URL, "", args...).want(t, 1, "Unable to connect to the server: ", c.want)
			}
		})
	}
}

// A user whom the server rejects is told what is wrong with the certificate.
func TestUsersCertificateOutOfTime(t *testing.T) {
	good, trusted := certified(t, -time.Hour, time.Hour)
	server := httptest.NewUnstartedServer(status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	const said = "error: You must be logged in to the server (Unauthorized)\n"
	for _, tc := range []struct {
		from, until time.Duration
		want        string
	}{
		{-48 * time.Hour, -time.Hour, " expired at "},
		{24 * time.Hour, 48 * time.Hour, " is not valid before "},
		{-time.Hour, time.Hour, ""},
	} {
		_, pair := certified(t, tc.from, tc.until)
		c := kctl(t, server.URL, "", "get", "--raw=/api", "--certificate-authority="+trusted, "--client-certificate="+pair, "--client-key="+pair)
		c.want(t, frame.ExitError, said, tc.want)
		if tc.want == "" && c.err.String() != said {
			t.Errorf("a certificate that is good now: %s", c.err.String())
		}
	}
}
