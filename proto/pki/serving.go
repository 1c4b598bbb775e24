package pki

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const selfSignedLasts = 365 * 24 * time.Hour

// ServingFiles returns certFile and keyFile if both are given. Otherwise it
// makes a self-signed pair for the subject in dir, named after its common name,
// or uses the one it made earlier, and returns its files.
func ServingFiles(certFile, keyFile, dir string, subject Subject, now time.Time) (cert, key string, err error) {
	if (certFile == "") != (keyFile == "") {
		return "", "", errors.New("a serving certificate and its key must be given together")
	}
	if certFile != "" {
		return certFile, keyFile, nil
	}
	cert, key = filepath.Join(dir, subject.CommonName+".crt"), filepath.Join(dir, subject.CommonName+".key")
	_, certErr := os.Stat(cert)
	_, keyErr := os.Stat(key)
	if certErr == nil && keyErr == nil {
		return cert, key, nil
	}
	if err := errors.Join(ignoreMissing(certErr), ignoreMissing(keyErr)); err != nil {
		return "", "", fmt.Errorf("serving certificate: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fmt.Errorf("serving certificate: %w", err)
	}
	subject.Server = true
	pair, err := SelfSigned(subject, now, selfSignedLasts)
	if err != nil {
		return "", "", fmt.Errorf("serving certificate: %w", err)
	}
	return cert, key, pair.Save(cert, key)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Reloader provides a certificate from files and notices changed files as
// handshakes ask for it, so it needs no loop. It is safe for concurrent use.
type Reloader struct {
	certFile, keyFile string
	clock             clock.PassiveClock

	mu         sync.Mutex
	cert       *tls.Certificate
	checked    time.Time
	modified   time.Time
	complaints Complaints
}

// reloadEvery bounds how often a server, which anybody may connect to, looks at
// its files.
const reloadEvery = time.Second

// NewReloader reads the pair once, so that bad files are noticed at start. The
// key may be in the certificate's file.
func NewReloader(certFile, keyFile string, clock clock.PassiveClock) (*Reloader, error) {
	r := &Reloader{certFile: certFile, keyFile: keyFile, clock: clock}
	if _, err := r.get(0); err != nil {
		return nil, err
	}
	return r, nil
}

// Tell has to hear from now on of what is wrong (see Complaints), also with the certificate that was
// read already.
func (r *Reloader) Tell(to func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complaints = Complaints{To: to}
	r.look(r.clock.Now())
}

// GetCertificate is for a server's tls.Config. New files that can't be read
// leave the old certificate in use.
func (r *Reloader) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return r.get(reloadEvery)
}

// GetClientCertificate is for a client's tls.Config. A connection that is made
// after the files have changed shows what they hold now.
func (r *Reloader) GetClientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return r.get(0)
}

func (r *Reloader) get(every time.Duration) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if r.cert != nil && now.Sub(r.checked) < every {
		return r.cert, nil
	}
	r.checked = now
	defer r.look(now)
	info, err := os.Stat(r.certFile)
	if err == nil && r.cert != nil && info.ModTime().Equal(r.modified) {
		r.complaints.AboutReload(nil)
		return r.cert, nil
	}
	cert, loadErr := tls.LoadX509KeyPair(r.certFile, r.keyFile)
	if loadErr != nil {
		err = loadErr // a missing file is reported once
	}
	if err != nil {
		err = fmt.Errorf("certificate %s with key %s: %w", r.certFile, r.keyFile, err)
		if r.cert == nil {
			return nil, err
		}
		r.complaints.AboutReload(err)
		return r.cert, nil
	}
	r.complaints.AboutReload(nil)
	r.cert, r.modified = &cert, info.ModTime()
	return r.cert, nil
}

// look tells of a certificate that is not valid now.
func (r *Reloader) look(now time.Time) {
	if r.cert != nil {
		r.complaints.AboutCertificate("certificate "+r.certFile, r.cert.Leaf, now)
	}
}

// ServerTLS is the TLS configuration of a server whose certificate is the one that shown
// returns.
func ServerTLS(shown func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: shown, NextProtos: []string{"h2", "http/1.1"},
		// Small records first are for browsers far away; they cut each event of
		// a watch into several writes and reads.
		DynamicRecordSizingDisabled: true,
	}
}
