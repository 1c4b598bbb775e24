package pki

import (
	"crypto/x509"
	"fmt"
	"time"
)

// Complaints tell a program's operator what is wrong with files that are in use: that a change of
// them is not taken, or that by this machine's clock others don't accept the certificate in
// them. Each is told once, and again after it was well. Who has one serialises its use.
type Complaints struct {
	// To hears of it, while the files are asked for: it must not ask for them. Nil for nobody.
	To func(error)

	refused, untimely string // what was told last; "" while all is well
}

// AboutReload tells why changed files were not taken; nil says that they were.
func (c *Complaints) AboutReload(err error) {
	if err != nil {
		err = fmt.Errorf("changed files were rejected, and their previous content stays in use: %w", err)
	}
	c.once(&c.refused, err)
}

// AboutCertificate tells of a certificate that is not valid at the time at which it is shown to others;
// what names it.
func (c *Complaints) AboutCertificate(what string, certificate *x509.Certificate, at time.Time) {
	c.once(&c.untimely, timeliness(what, certificate, at))
}

func (c *Complaints) once(last *string, err error) {
	if err == nil {
		*last = ""
		return
	}
	if c.To != nil && *last != err.Error() {
		c.To(err)
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
