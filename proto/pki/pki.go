package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Pair is a certificate and its private key, both as PEM.
type Pair struct {
	Cert, Key []byte
}

// Subject is what a certificate says about its holder.
type Subject struct {
	CommonName   string   // the user name, for clients
	Organization []string // the groups, for clients
	DNSNames     []string
	IPs          []net.IP
	// Server and Client say what the certificate may be used for.
	Server, Client bool
}

// backdate lets machines whose clocks are a little behind accept a certificate
// that was made this moment.
const backdate = 5 * time.Minute

// selfBackdate is the same for self-signed certificates, as in upstream's
// programs: there is no authority with a clock of its own.
const selfBackdate = time.Hour

// NewCA makes a certificate authority of its own.
func NewCA(name string, now time.Time, lasts time.Duration) (*Pair, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	return newCA(name, key, now, lasts)
}

// NewCAWithKey makes a new certificate for an authority whose key exists: what
// the key has signed is trusted again.
func NewCAWithKey(name string, keyPEM []byte, now time.Time, lasts time.Duration) (*Pair, error) {
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	ca, err := newCA(name, key, now, lasts)
	if err != nil {
		return nil, err
	}
	return &Pair{Cert: ca.Cert, Key: keyPEM}, nil
}

func newCA(name string, key crypto.Signer, now time.Time, lasts time.Duration) (*Pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              []string{name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lasts),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return sign(template, template, key, key)
}

// Issue makes a key and a certificate for subject, signed by ca.
func (ca *Pair) Issue(subject Subject, now time.Time, lasts time.Duration) (*Pair, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	return ca.sign(subject.template(now, lasts), key)
}

// IssueWithKey makes a certificate for subject and its existing key. Replacing
// a certificate then changes one file, so no reader ever finds a certificate
// and a key that don't belong together.
func (ca *Pair) IssueWithKey(subject Subject, keyPEM []byte, now time.Time, lasts time.Duration) (*Pair, error) {
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	issued, err := ca.sign(subject.template(now, lasts), key)
	if err != nil {
		return nil, err
	}
	return &Pair{Cert: issued.Cert, Key: keyPEM}, nil
}

func (ca *Pair) sign(template *x509.Certificate, key crypto.Signer) (*Pair, error) {
	authority, err := tls.X509KeyPair(ca.Cert, ca.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	signer, ok := authority.PrivateKey.(crypto.Signer)
	if !ok || authority.Leaf == nil || !authority.Leaf.IsCA {
		return nil, errors.New("certificate authority: the certificate is not a CA certificate")
	}
	return sign(template, authority.Leaf, key, signer)
}

// SelfSigned makes a self-signed serving certificate.
func SelfSigned(subject Subject, now time.Time, lasts time.Duration) (*Pair, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := subject.template(now, lasts)
	template.NotBefore = now.Add(-selfBackdate)
	return sign(template, template, key, key)
}

func (s Subject) template(now time.Time, lasts time.Duration) *x509.Certificate {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: s.CommonName, Organization: s.Organization},
		DNSNames:              s.DNSNames,
		IPAddresses:           s.IPs,
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lasts),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
	}
	if s.Server {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if s.Client {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	return t
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return key, nil
}

func sign(template, parent *x509.Certificate, key, signer crypto.Signer) (*Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %q: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}, nil
}

// NewKey makes a private key (PEM).
func NewKey() ([]byte, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	return encodeKey(key)
}

// NewRequest makes a request for a certificate of subject with a key (PEM), for
// others to sign (PEM, as in a CertificateSigningRequest).
func NewRequest(subject Subject, key []byte) ([]byte, error) {
	private, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: subject.CommonName, Organization: subject.Organization},
		DNSNames: subject.DNSNames, IPAddresses: subject.IPs,
	}, private)
	if err != nil {
		return nil, fmt.Errorf("make certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// RequestContents is what a request (PEM) asks for, and for which key: the same
// each time, while its signature is another one.
func RequestContents(request []byte) ([]byte, error) {
	csr, err := ParseRequest(request)
	if err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	return csr.RawTBSCertificateRequest, nil
}

// ParseRequest reads a certificate request (PEM). Its signature is not checked.
func ParseRequest(request []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(request)
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

// SubjectOf returns what a certificate says about its holder.
func SubjectOf(cert *x509.Certificate) Subject {
	return Subject{
		CommonName: cert.Subject.CommonName, Organization: cert.Subject.Organization,
		DNSNames: cert.DNSNames, IPs: cert.IPAddresses,
		Server: slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth),
		Client: slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageClientAuth),
	}
}

func parseKey(keyPEM []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("private key: it is not PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, errors.New("private key: it can't be read") // and nothing of it is shown
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("private key: it can't sign")
	}
	return signer, nil
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// NewSigningKey makes a key that signs service-account tokens, and the public
// half that verifies them, both as PEM.
func NewSigningKey() (private, public []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	if private, err = encodeKey(key); err != nil {
		return nil, nil, err
	}
	public, err = PublicKey(private)
	return private, public, err
}

// PublicKey is the public half of a private key, as PEM.
func PublicKey(private []byte) ([]byte, error) {
	key, err := parseKey(private)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// Load reads a Pair from its files.
func Load(certFile, keyFile string) (*Pair, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("read private key: %w", err)
	}
	return &Pair{Cert: cert, Key: key}, nil
}

// Save writes the Pair to its files, 0600.
func (p *Pair) Save(certFile, keyFile string) error {
	if err := WriteFile(keyFile, p.Key); err != nil {
		return err
	}
	return WriteFile(certFile, p.Cert)
}

// WriteFile writes data to path, 0600, whole or not at all.
func WriteFile(path string, data []byte) error { return WriteFileMode(path, data, 0o600) }

// WriteFileMode is WriteFile for files that others may see.
func WriteFileMode(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// RemoveUnfinished removes what a killed WriteFile has left of a file, which may be secret.
// Nobody else may be writing it.
func RemoveUnfinished(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if IsUnfinished(entry.Name(), filepath.Base(path)) && entry.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(path), entry.Name())))
		}
	}
	return err
}

// IsUnfinished recognises the name of what a killed WriteFile has left beside a file of another
// name: it ends in os.CreateTemp's 32 random bits.
func IsUnfinished(name, of string) bool {
	random, is := strings.CutPrefix(name, "."+of+".")
	_, err := strconv.ParseUint(random, 10, 32)
	return is && err == nil
}

// TLS is the Pair as crypto/tls takes it.
func (p *Pair) TLS() (tls.Certificate, error) { return tls.X509KeyPair(p.Cert, p.Key) }

// Fresh reports whether certFile and keyFile exist and the certificate is valid
// at least until the given time.
func Fresh(certFile, keyFile string, until time.Time) (bool, error) {
	pair, err := Load(certFile, keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	cert, err := pair.TLS()
	if err != nil {
		return false, fmt.Errorf("certificate %s: %w", certFile, err)
	}
	return cert.Leaf.NotAfter.After(until), nil
}
