package certificates

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kctl/proto/pki"
)

// Renew gives certificates a new validity with the same key, holder and names.
// Each is one file that is replaced in one step, so that programs that read it
// meanwhile find the old or the new one. Kubeconfigs get the authorities that are
// trusted now, too. Without names it renews all that exist. Authorities are never
// renewed.
func (d *Directory) Renew(names []string, now time.Time) ([]Change, error) {
	return d.renewThose(names, now, func(*x509.Certificate) bool { return true })
}

// RenewExpiring renews what ends within a time, or in the last third of its life if that
// is shorter: otherwise what is made to last for less would be renewed again and again.
// What does not end by then is left as it is, and told as kept.
func (d *Directory) RenewExpiring(names []string, within time.Duration, now time.Time) ([]Change, error) {
	return d.renewThose(names, now, func(cert *x509.Certificate) bool {
		life := cert.NotAfter.Sub(cert.NotBefore)
		return cert.NotAfter.Sub(now) < min(within, life/3)
	})
}

func (d *Directory) renewThose(names []string, now time.Time, due func(*x509.Certificate) bool) ([]Change, error) {
	if err := d.checkNames(names); err != nil {
		return nil, err
	}
	unlock, err := Lock(d.Path(""))
	if err != nil {
		return nil, err
	}
	defer unlock()
	signer := newSigner(now)
	var changes []Change
	var errs []error
	for _, s := range d.states(now) {
		if s.entry.Authority == "" || len(names) > 0 && !slices.Contains(names, s.entry.Name) {
			continue
		}
		if s.has(problemMissing) && len(names) == 0 {
			continue // it is another machine's
		}
		if !s.unclear() && !due(s.cert) {
			changes = append(changes, Change{File: d.file(s.entry), Done: Kept + " until " + s.cert.NotAfter.UTC().Format(time.RFC3339)})
			continue
		}
		change, err := d.renew(s, signer)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		changes = append(changes, change)
	}
	if len(changes) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("there are no certificates in %s", d.Path("")))
	}
	return changes, errors.Join(errs...)
}

func (d *Directory) checkNames(names []string) error {
	var all []string
	for _, e := range d.Entries {
		if e.Authority != "" {
			all = append(all, e.Name)
		}
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("no certificate %q can be renewed here; there are %s", name, strings.Join(all, ", "))
		}
	}
	return nil
}

func (d *Directory) renew(s *state, signer *signer) (Change, error) {
	file := d.file(s.entry)
	for _, p := range s.problems {
		if p.kind.unclear() {
			return Change{}, errors.New(p.Detail)
		}
	}
	e := s.entry
	e.Subject = mergeNames(pki.SubjectOf(s.cert), pki.Subject{
		CommonName: s.cert.Subject.CommonName, Organization: s.cert.Subject.Organization,
		Server: e.Subject.Server, Client: e.Subject.Client,
	})
	pair, err := signer.issue(d, e, s.pair.Key)
	if err != nil {
		return Change{}, fmt.Errorf("%s: %w", file, err)
	}
	if err := d.save(e, s.pair, pair); err != nil {
		return Change{}, err
	}
	return Change{File: file, Done: Renewed + " until " + formatExpiry(pair)}, nil
}

// unclear says that there is no whole certificate to renew, so that people have to look.
func (s *state) unclear() bool {
	return slices.ContainsFunc(s.problems, func(p problem) bool { return p.kind.unclear() })
}

func (k problemKind) unclear() bool {
	return k == problemMissing || k == problemHalf || k == problemUnusable
}

// formatExpiry says when a new certificate ends.
func formatExpiry(pair *pki.Pair) string {
	cert, err := parse(pair.Cert)
	if err != nil {
		return "?"
	}
	return cert.NotAfter.UTC().Format(time.RFC3339)
}
