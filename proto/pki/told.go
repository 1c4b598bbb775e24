package pki

import (
	"crypto/x509"
	"fmt"
	"time"
)

// Told tells a program's operator what is wrong with files that are in use: that a change of
// them is not taken, or that by this machine's clock others don't accept the certificate in
// them. Each is told once, and again after it was well. Who has one serialises its use.
type Told struct {
	// To hears of it, while the files are asked for: it must not ask for them. Nil for nobody.
	To func(error)

	refused, untimely string // what was told last; "" while all is well
}

// Read tells why changed files were not taken; nil says that they were.
func (t *Told) Read(err error) {
	if err != nil {
		err = fmt.Errorf("changed files were rejected, and their previous content stays in use: %w", err)
	}
	t.once(&t.refused, err)
}

// Shown tells of a certificate that is not valid at the time at which it is shown to others;
// what names it.
func (t *Told) Shown(what string, certificate *x509.Certificate, at time.Time) {
	t.once(&t.untimely, timeliness(what, certificate, at))
}

func (t *Told) once(last *string, err error) {
	if err == nil {
		*last = ""
		return
	}
	if t.To != nil && *last != err.Error() {
		t.To(err)
	}
	*last = err.Error()
}

// timeliness is an error if the certificate is not valid at that time.
func timeliness(what string, certificate *x509.Certificate, at time.Time) error {
	const advice = "others do not accept it: set this machine's clock if it is wrong, or have a new one made (kctl pki renew)"
	switch {
	case at.Before(certificate.NotBefore):
		return fmt.Errorf("%s is not valid before %s: %s", what, certificate.NotBefore.Format(time.RFC3339), advice)
	case at.After(certificate.NotAfter):
		return fmt.Errorf("%s has expired at %s: %s", what, certificate.NotAfter.Format(time.RFC3339), advice)
	}
	return nil
}
