package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"kctl/kubectl/internal/shell"
	"kctl/proto/pki"
)

// problem is what is wrong with a certificate, and what to do.
type problem struct {
	kind   problemKind
	Detail string
}

// problemKind says what becomes of a problem: see Make.
type problemKind int

const (
	problemMissing  problemKind = iota + 1 // nothing is there
	problemHalf                            // a certificate or a key without the other
	problemExpired                         // or ends soon
	problemEnding                          // an authority that expires soon: it is not renewed
	problemNames                           // the certificate does not say all the names that it should
	problemExposed                         // others may read the key
	problemUnusable                        // it is unclear what was meant: people have to look
)

// state is what there is of an entry.
type state struct {
	entry    Entry
	pair     *pki.Pair         // nil if it can't be read; one half may be empty
	cert     *x509.Certificate // nil if it can't be read
	problems []problem
}

func (s *state) has(k problemKind) bool {
	return slices.ContainsFunc(s.problems, func(p problem) bool { return p.kind == k })
}

func (s *state) add(k problemKind, format string, args ...any) {
	s.problems = append(s.problems, problem{k, fmt.Sprintf(format, args...)})
}

// readState looks at an entry's files. authority is the state of the one that signs
// it, nil for authorities.
func (d *Directory) readState(e Entry, authority *state, now time.Time) *state {
	s := &state{entry: e}
	f := certificateFiles{d.file(e), d.keyFile(e), d.remedy(e), d.initial()}
	pair, err := d.load(e)
	if err != nil {
		s.add(problemUnusable, "%v%s", err, f.instead(s, "it", err))
		return s
	}
	s.pair = pair
	switch {
	case len(pair.Cert) == 0 && len(pair.Key) == 0:
		s.add(problemMissing, "%s is not there", f.cert)
		return s
	case len(pair.Cert) == 0:
		s.add(problemHalf, "%s exists without its certificate %s", f.key, f.cert)
		return s
	}
	if s.cert, err = parse(pair.Cert); err != nil {
		s.add(problemUnusable, "%s: %v%s", f.cert, err, f.instead(s, "it", err))
		return s
	}
	f.checkKey(s)
	f.checkAuthority(s, authority, d.Path(e.Authority+".crt"))
	f.checkContent(s, now, d.RenewBefore)
	return s
}

// load reads what exists of an entry. An empty file is what a power cut can
// leave behind: it counts as missing.
func (d *Directory) load(e Entry) (*pki.Pair, error) {
	if e.Kubeconfig {
		if info, err := os.Stat(d.Kubeconfig(e.Name)); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
			return &pki.Pair{}, nil
		}
		return loadKubeconfig(d.Kubeconfig(e.Name))
	}
	cert, err := readOrNothing(d.file(e))
	if err != nil {
		return nil, err
	}
	key, err := readOrNothing(d.keyFile(e))
	if err != nil {
		return nil, err
	}
	return &pki.Pair{Cert: cert, Key: key}, nil
}

func readOrNothing(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// signed says that an authority's file has the one that signed a certificate. While an
// authority is being replaced, both are in the file: first the new one, whose key
// signs, then the old one, which is still trusted.
func (s *state) signed(cert *x509.Certificate) bool {
	trusted, err := certutil.ParseCertsPEM(s.pair.Cert)
	return err == nil && slices.ContainsFunc(trusted, func(one *x509.Certificate) bool { return cert.CheckSignatureFrom(one) == nil })
}

func parse(certPEM []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(certPEM)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("no PEM certificate in it")
	}
	return x509.ParseCertificate(block.Bytes)
}

// certificateFiles says where a certificate and its key are, what to do when it expires, and
// what makes it where it is not.
type certificateFiles struct{ cert, key, remedy, initial string }

// initial is the command that makes what is not there.
func (d *Directory) initial() string { return "`kctl pki init --dir " + shell.Word(d.Dir) + "`" }

// instead is what to do about files of no use. Those that this user may not read can be
// good: nothing is to be done about them. Without an authority, what it signed is of no use
// either, and in the way of another.
func (f certificateFiles) instead(s *state, files string, err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return ""
	}
	if s.entry.Authority == "" {
		files += " and all that the authority signed"
	}
	return fmt.Sprintf("; put the right one back, or move %s away and run %s", files, f.initial)
}

// remedy is what to do when an entry expires.
func (d *Directory) remedy(e Entry) string {
	if e.Authority == "" {
		return "authorities are not renewed: `kctl pki init` makes another, and all that it signs, once everything of this one is moved away"
	}
	return fmt.Sprintf("`kctl pki renew %s --dir %s` renews it", e.Name, shell.Word(d.Dir))
}

func (f certificateFiles) checkKey(s *state) {
	if len(s.pair.Key) == 0 {
		// An authority's key may be kept elsewhere: it is needed to sign only.
		if s.entry.Authority != "" {
			s.add(problemHalf, "%s exists without its key %s", f.cert, f.key)
		}
		return
	}
	if _, err := s.pair.TLS(); err != nil {
		s.add(problemUnusable, "%s is not the key of %s%s", f.key, f.cert, f.instead(s, "both", err))
	}
	if info, err := os.Stat(f.key); err == nil && info.Mode().Perm()&0o027 != 0 {
		s.problems = append(s.problems, problem{problemExposed, exposedKey(f.key, info.Mode())})
	}
}

func exposedKey(file string, mode fs.FileMode) string {
	return fmt.Sprintf("%s can be read or written by others (mode %04o); `chmod 600` it, and think of who may have copied it",
		file, mode.Perm())
}

func (f certificateFiles) checkAuthority(s, authority *state, authorityFile string) {
	file := f.cert
	if s.entry.Authority == "" {
		if !s.cert.IsCA {
			s.add(problemUnusable, "%s is not the certificate of an authority", file)
		}
		return
	}
	if authority == nil || authority.cert == nil {
		if authority == nil || !authority.has(problemHalf) {
			s.add(problemUnusable, "%s exists without %s, which signed it: restore that, or move %s away", file, authorityFile, file)
		}
		return
	}
	if !authority.signed(s.cert) {
		s.add(problemUnusable, "%s is not signed by %s; put the right files back, or move it away and run %s", file, authorityFile, f.initial)
	}
}

func (f certificateFiles) checkContent(s *state, now time.Time, renewBefore time.Duration) {
	file, want := f.cert, s.entry.Subject
	switch {
	case now.Before(s.cert.NotBefore):
		s.add(problemUnusable, "%s is not valid before %s: is this machine's clock right?", file, s.cert.NotBefore.UTC().Format(time.RFC3339))
	case !now.Before(s.cert.NotAfter):
		s.add(problemExpired, "%s expired at %s; %s", file, s.cert.NotAfter.UTC().Format(time.RFC3339), f.remedy)
	case now.Add(renewBefore).After(s.cert.NotAfter):
		kind := problemExpired
		if s.entry.Authority == "" {
			kind = problemEnding
		}
		s.add(kind, "%s expires at %s; %s", file, s.cert.NotAfter.UTC().Format(time.RFC3339), f.remedy)
	}
	has := pki.SubjectOf(s.cert)
	if lacks := missingNames(has, want); len(lacks) > 0 {
		s.add(problemNames, "%s does not name %s", file, strings.Join(lacks, ", "))
	}
	if s.entry.Authority != "" && (want.Server && !has.Server || want.Client && !has.Client) {
		s.add(problemUnusable, "%s is not good for what it is used for (extended key usage): is it another certificate's file?", file)
	}
	if want.CommonName != "" && s.entry.Authority != "" && has.Client && !want.Server && has.CommonName != want.CommonName {
		s.add(problemUnusable, "%s is the certificate of %q, not of %q: is it another certificate's file?", file, has.CommonName, want.CommonName)
	}
}

// missingNames are the names and addresses that a server's certificate should have.
func missingNames(has, want pki.Subject) []string {
	var lacks []string
	for _, name := range want.DNSNames {
		if !slices.Contains(has.DNSNames, name) {
			lacks = append(lacks, name)
		}
	}
	for _, ip := range want.IPs {
		if !slices.ContainsFunc(has.IPs, ip.Equal) {
			lacks = append(lacks, ip.String())
		}
	}
	return lacks
}

// mergeNames returns the second subject with the names of the first one too.
func mergeNames(has, want pki.Subject) pki.Subject {
	lacks := Hosts(missingNames(has, want))
	want.DNSNames, want.IPs = slices.Clone(has.DNSNames), slices.Clone(has.IPs)
	return lacks.addTo(want)
}

// states looks at everything, authorities first.
func (d *Directory) states(now time.Time) []*state {
	byName := map[string]*state{}
	var all []*state
	for _, e := range d.Entries {
		s := d.readState(e, byName[e.Authority], now)
		byName[e.Name] = s
		all = append(all, s)
	}
	return all
}

// holdsPublicKey says whether a file of public keys holds the public half of a key. It may hold
// others: while the key is replaced, tokens of both the old and the new one are valid.
func holdsPublicKey(public, private []byte) bool {
	want, err := pki.PublicKey(private)
	return err == nil && bytes.Contains(public, bytes.TrimSpace(want))
}
