package certificates

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kctl/proto/pki"
	"kctl/proto/rest"
)

// Finding is what there is to say about one certificate.
type Finding struct {
	Name      string    `json:"name"`
	File      string    `json:"file"`
	Subject   string    `json:"subject,omitempty"`
	Authority string    `json:"authority,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
	Problems  []string  `json:"problems,omitempty"`
	// Soon says that it expires, or has, within the time that was asked about.
	Soon bool `json:"soon,omitempty"`
}

// Check looks at every certificate that is there: those of the entries, and
// those of other kubeconfigs in the directory. What ends sooner than
// RenewBefore is a problem.
func (d *Directory) Check(now time.Time) ([]Finding, error) {
	var findings []Finding
	for _, s := range d.states(now) {
		if !s.has(problemMissing) {
			findings = append(findings, d.finding(s))
		}
	}
	others, err := d.otherKubeconfigs(now)
	if err != nil {
		return nil, err
	}
	findings = append(findings, others...)
	if len(findings) == 0 {
		return nil, fmt.Errorf("there are no certificates in %s; create them with `kctl pki init`, or choose another directory with --dir", d.Dir)
	}
	return append(findings, d.signingKey()...), nil
}

func (d *Directory) finding(s *state) Finding {
	f := Finding{Name: s.entry.Name, File: d.file(s.entry)}
	if s.entry.Kubeconfig {
		f.Name += ".kubeconfig"
	}
	f.describe(s.cert)
	f.addProblems(s)
	return f
}

// addProblems copies what was found wrong into the finding.
func (f *Finding) addProblems(s *state) {
	f.Soon = s.has(problemExpired) || s.has(problemEnding)
	for _, p := range s.problems {
		f.Problems = append(f.Problems, p.Detail)
	}
}

func (f *Finding) describe(cert *x509.Certificate) {
	if cert == nil {
		return
	}
	f.Subject, f.Authority, f.Expires = cert.Subject.CommonName, cert.Issuer.CommonName, cert.NotAfter
	if len(cert.Subject.Organization) > 0 {
		f.Subject += " (" + strings.Join(cert.Subject.Organization, ", ") + ")"
	}
}

// otherKubeconfigs are those that are not entries, such as a kubelet's. One
// without a certificate, with a token say, has nothing here that expires.
func (d *Directory) otherKubeconfigs(now time.Time) ([]Finding, error) {
	files, err := filepath.Glob(d.Kubeconfig("*"))
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".kubeconfig")
		if slices.ContainsFunc(d.Entries, func(e Entry) bool { return e.Kubeconfig && e.Name == name }) {
			continue
		}
		if f := d.otherKubeconfig(file, now); f != nil {
			findings = append(findings, *f)
		}
	}
	return findings, nil
}

// kubeletKubeconfig is that of a machine that joined.
const kubeletKubeconfig = "kubelet.kubeconfig"

func (d *Directory) otherKubeconfig(file string, now time.Time) *Finding {
	f := &Finding{Name: filepath.Base(file), File: file}
	config, err := rest.LoadKubeconfig(file)
	if err != nil {
		f.Problems = append(f.Problems, err.Error())
		return f
	}
	pair := &pki.Pair{Cert: config.CertData, Key: config.KeyData}
	keyFile := file
	if config.CertFile != "" && len(config.CertData) == 0 {
		f.File, keyFile = config.CertFile, config.KeyFile
		if pair, err = pki.Load(config.CertFile, config.KeyFile); err != nil {
			f.Problems = append(f.Problems, err.Error())
			return f
		}
	}
	if len(pair.Cert) == 0 {
		return nil
	}
	s := &state{entry: Entry{Name: f.Name, Authority: Authority}, pair: pair}
	if s.cert, err = parse(pair.Cert); err != nil {
		f.Problems = append(f.Problems, f.File+": "+err.Error())
		return f
	}
	f.describe(s.cert)
	at := certificateFiles{f.File, keyFile, "`kctl pki kubeconfig` makes another", "`kctl pki kubeconfig`"}
	if f.Name == kubeletKubeconfig {
		at.remedy = "the kubelet renews it while it runs"
	}
	at.checkKey(s)
	at.checkContent(s, now, d.RenewBefore)
	authority := d.readState(Entry{Name: Authority}, nil, now)
	at.checkAuthority(s, authority, d.Path(Authority+".crt"))
	f.addProblems(s)
	return f
}

// signingKey checks the key of service accounts, and says something only if it is wrong.
func (d *Directory) signingKey() []Finding {
	keyFile, publicFile := d.Path(SigningKey+".key"), d.Path(SigningKey+".pub")
	private, errKey := readOrNothing(keyFile)
	public, errPublic := readOrNothing(publicFile)
	f := Finding{Name: SigningKey, File: keyFile}
	if err := errors.Join(errKey, errPublic); err != nil {
		f.Problems = append(f.Problems, err.Error())
	}
	if len(private) > 0 && len(public) > 0 && !holdsPublicKey(public, private) {
		f.Problems = append(f.Problems, fmt.Sprintf("%s does not hold the public half of %s", publicFile, keyFile))
	}
	if info, err := os.Stat(keyFile); err == nil && info.Mode().Perm()&0o027 != 0 {
		f.Problems = append(f.Problems, exposedKey(keyFile, info.Mode()))
	}
	if len(f.Problems) == 0 {
		return nil
	}
	return []Finding{f}
}

// Hashes are those by which a joining node knows the authorities in a PEM file:
// of their public keys, as kubeadm writes them.
func Hashes(caPEM []byte) ([]string, error) {
	var hashes []string
	for block, rest := pem.Decode(caPEM); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, Hash(cert))
	}
	if len(hashes) == 0 {
		return nil, errors.New("no PEM certificate in it")
	}
	return hashes, nil
}

// Hash is that of one certificate's public key.
func Hash(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}
