package pki

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Authorities are the certificate authorities in a file. A changed file is read
// when it is next asked for, at most once a second, so no loop is needed; a
// file that can't be read leaves the old content in use. They are safe for
// concurrent use.
type Authorities struct {
	what, file string // file is "" for those that never change
	clock      clock.PassiveClock

	mu         sync.Mutex
	pool       *x509.CertPool
	pem        []byte
	checked    time.Time
	complaints Complaints
}

// NewAuthorities reads file once, so that a bad one is noticed at start. what
// names it in errors.
func NewAuthorities(what, file string, clock clock.PassiveClock) (*Authorities, error) {
	a := &Authorities{what: what, file: file, clock: clock}
	if err := a.load(); err != nil {
		return nil, err
	}
	a.checked = clock.Now()
	return a, nil
}

// FixedAuthorities are those in data, in PEM. what says in errors where they are from.
func FixedAuthorities(what string, data []byte) (*Authorities, error) {
	a := &Authorities{what: what}
	return a, a.take(data)
}

func (a *Authorities) load() error {
	data, err := os.ReadFile(a.file)
	if err != nil {
		return fmt.Errorf("%s: %w", a.what, err)
	}
	if a.pool != nil && bytes.Equal(data, a.pem) {
		return nil
	}
	return a.take(data)
}

func (a *Authorities) take(data []byte) error {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return fmt.Errorf("%s: no PEM certificate in it", strings.TrimSpace(a.what+" "+a.file))
	}
	a.pool, a.pem = pool, data
	return nil
}

// current returns the authorities to check against now. A different pool means
// that the file has changed.
func (a *Authorities) current() (*x509.CertPool, []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refresh()
	return a.pool, a.pem
}

func (a *Authorities) refresh() {
	if a.file == "" {
		return
	}
	if now := a.clock.Now(); now.Sub(a.checked) >= reloadEvery {
		a.checked = now
		a.complaints.AboutReload(a.load())
	}
}

// Tell has to hear from now on of a changed file that is not taken (see Complaints): who is to be
// trusted from now on is not.
func (a *Authorities) Tell(to func(error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.complaints = Complaints{To: to}
}

// Pool is what certificates are checked against.
func (a *Authorities) Pool() *x509.CertPool {
	pool, _ := a.current()
	return pool
}

// PEM is the file's content.
func (a *Authorities) PEM() []byte {
	_, data := a.current()
	return data
}

// Pool returns the authorities in file, as they are now; what names them in errors.
func Pool(what, file string) (*x509.CertPool, error) {
	a := &Authorities{what: what, file: file}
	err := a.load()
	return a.pool, err
}
