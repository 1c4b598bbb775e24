package certificates

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kctl/proto/pki"
	"kctl/proto/rest"
)

// Change is what was done to a file.
type Change struct {
	File string
	Done string // "made", "kept", …
}

// Made and the like are what Change.Done begins with.
const (
	Made      = "made"
	Kept      = "kept"
	Completed = "completed"
	Renewed   = "renewed"
)

// Make makes what is missing, completes what was cut short, and renews what has
// expired or lacks a name. Good files are kept. If it finds anything that makes
// no sense, it changes nothing at all, and the error says what to do.
func (d *Directory) Make(now time.Time) ([]Change, error) {
	unlock, err := Lock(d.Path(""))
	if err != nil {
		return nil, err
	}
	defer unlock()
	all := d.states(now)
	if err := refuseUnusable(all); err != nil {
		return nil, err
	}
	signer := newSigner(now)
	var changes []Change
	for _, s := range all {
		change, err := d.reconcile(s, signer)
		if err != nil {
			return changes, err
		}
		changes = append(changes, change)
	}
	change, err := d.makeSigningKey()
	if err != nil {
		return changes, err
	}
	return append(changes, change), nil
}

// refuseUnusable says what people have to look at first.
func refuseUnusable(all []*state) error {
	var errs []error
	for _, s := range all {
		for _, p := range s.problems {
			if p.kind == problemUnusable || p.kind == problemExpired && s.entry.Authority == "" {
				errs = append(errs, errors.New(p.Detail))
			}
		}
	}
	return errors.Join(errs...)
}

// reconcile brings one entry to its desired state.
func (d *Directory) reconcile(s *state, signer *signer) (Change, error) {
	e, file := s.entry, d.file(s.entry)
	change := Change{File: file, Done: Kept}
	if e.Authority == "" && s.cert != nil {
		signer.authorities[e.Name] = s.pair
		return change, nil
	}
	switch {
	case s.has(problemMissing):
		change.Done = Made
	case s.has(problemHalf):
		change.Done = Completed
	case s.has(problemExpired), s.has(problemNames):
		change.Done = Renewed + ": " + joinProblems(s.problems)
	default:
		return change, nil
	}
	if s.cert != nil {
		e.Subject = mergeNames(pki.SubjectOf(s.cert), e.Subject)
	}
	pair, err := signer.issue(d, e, s.pair.Key)
	if err != nil {
		return change, fmt.Errorf("%s: %w", file, err)
	}
	if e.Authority == "" {
		signer.authorities[e.Name] = pair
	}
	if err := d.save(e, s.pair, pair); err != nil {
		return change, err
	}
	return change, nil
}

func joinProblems(problems []problem) string {
	var parts []string
	for _, p := range problems {
		parts = append(parts, p.Detail)
	}
	return strings.Join(parts, "; ")
}

// signer signs with the authorities of a directory.
type signer struct {
	now         time.Time
	authorities map[string]*pki.Pair // those that were read or made, by name
}

func newSigner(now time.Time) *signer { return &signer{now, map[string]*pki.Pair{}} }

// issue makes a certificate; for the key that is there, if one is.
func (s *signer) issue(d *Directory, e Entry, key []byte) (*pki.Pair, error) {
	lasts := d.lasts(e)
	if e.Authority == "" {
		if len(key) > 0 {
			return pki.NewCAWithKey(e.Subject.CommonName, key, s.now, lasts)
		}
		return pki.NewCA(e.Subject.CommonName, s.now, lasts)
	}
	authority := s.authorities[e.Authority]
	if authority == nil {
		loaded, err := pki.Load(d.Path(e.Authority+".crt"), d.Path(e.Authority+".key"))
		if err != nil {
			return nil, err
		}
		authority = loaded
	}
	if len(authority.Key) == 0 {
		return nil, fmt.Errorf(
			"%s does not exist, so nothing can be signed; run this command on the machine that has it, and copy the results here",
			d.Path(e.Authority+".key"))
	}
	var issued *pki.Pair
	var err error
	if len(key) > 0 {
		issued, err = authority.IssueWithKey(e.Subject, key, s.now, lasts)
	} else {
		issued, err = authority.Issue(e.Subject, s.now, lasts)
	}
	if err == nil && e.Chain {
		issued.Cert = append(issued.Cert, authority.Cert...)
	}
	return issued, err
}

// save writes an entry. The key comes first: a key without its certificate is
// completed by the next Make.
func (d *Directory) save(e Entry, before, after *pki.Pair) error {
	if err := os.MkdirAll(filepath.Dir(d.file(e)), 0o755); err != nil {
		return err
	}
	if e.Kubeconfig {
		return d.saveKubeconfig(e, before, after)
	}
	if string(before.Key) != string(after.Key) {
		if err := pki.WriteFile(d.keyFile(e), after.Key); err != nil {
			return err
		}
	}
	if len(before.Cert) > 0 {
		return writeLike(d.file(e), after.Cert)
	}
	return pki.WriteFileMode(d.file(e), after.Cert, 0o644)
}

// saveKubeconfig writes a kubeconfig, or the certificate and the authorities in it.
// Those who could read the old file can read the new one too.
func (d *Directory) saveKubeconfig(e Entry, before, after *pki.Pair) error {
	path := d.Kubeconfig(e.Name)
	if len(before.Cert) == 0 {
		data, err := d.kubeconfig(e, after)
		if err != nil {
			return err
		}
		return pki.WriteFile(path, data)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	config, err := rest.LoadKubeconfig(path)
	if err != nil {
		return err
	}
	authorities, err := readOrNothing(d.Path(e.Authority + ".crt"))
	if err != nil {
		return err
	}
	if data, err = replaceIn(data, before, after); err == nil {
		data, err = trusting(data, config.CAData, authorities)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return writeLike(path, data)
}

// writeLike replaces a file by one of the same owner and mode.
func writeLike(path string, data []byte) error {
	var was unix.Stat_t
	if err := unix.Stat(path, &was); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	temporary := path + ".new"
	defer os.Remove(temporary)
	if err := pki.WriteFile(temporary, data); err != nil {
		return err
	}
	// By its descriptor: who owns the directory might put a link in its place, and root would
	// give them what it leads to.
	f, err := os.OpenFile(temporary, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Chown(int(was.Uid), int(was.Gid)), f.Chmod(fs.FileMode(was.Mode&0o777)), f.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// makeSigningKey makes the key that signs service account tokens.
func (d *Directory) makeSigningKey() (Change, error) {
	keyFile, publicFile := d.Path(SigningKey+".key"), d.Path(SigningKey+".pub")
	change := Change{File: keyFile, Done: Kept}
	private, err := readOrNothing(keyFile)
	if err != nil {
		return change, err
	}
	public, err := readOrNothing(publicFile)
	if err != nil {
		return change, err
	}
	switch {
	case len(private) > 0 && len(public) > 0 && !holdsPublicKey(public, private):
		return change, fmt.Errorf("%s does not match the private key %s; restore the right file, or move it away and run this again",
			publicFile, keyFile)
	case len(private) > 0 && len(public) > 0:
		return change, nil
	case len(private) == 0 && len(public) > 0:
		return change, fmt.Errorf(
			"%s exists without its private key %s; restore the key, or move both away (existing tokens then become invalid)",
			publicFile, keyFile)
	case len(private) == 0:
		change.Done = Made
		if private, _, err = pki.NewSigningKey(); err == nil {
			err = pki.WriteFile(keyFile, private)
		}
	default:
		change.Done = Completed
	}
	if err != nil {
		return change, err
	}
	if public, err = pki.PublicKey(private); err != nil {
		return change, fmt.Errorf("%s: %w", keyFile, err)
	}
	return change, pki.WriteFileMode(publicFile, public, 0o644)
}

// Lock keeps two processes from making the same files in a directory at once. It makes the
// directory, and leaves nothing else behind.
func Lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}
