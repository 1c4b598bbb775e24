package daemon

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/proto/pki"
)

// TLSOptions are the flags of how TLS is spoken to clients.
type TLSOptions struct {
	MinVersion   string   // VersionTLS12 (the default if empty) or VersionTLS13
	CipherSuites []string // for TLS 1.2; empty means Go's choice
	Curves       []int32  // for key agreement, as crypto/tls numbers them; empty means Go's choice
	DisableHTTP2 bool
}

// AddFlags adds the flags that every program has.
func (o *TLSOptions) AddFlags(fs *pflag.FlagSet) {
	if o.MinVersion == "" {
		o.MinVersion = "VersionTLS12"
	}
	fs.StringVar(&o.MinVersion, "tls-min-version", o.MinVersion, "minimum TLS version: VersionTLS12 or VersionTLS13")
	fs.StringSliceVar(&o.CipherSuites, "tls-cipher-suites", o.CipherSuites, "cipher suites for TLS 1.2 (default: Go's)")
}

// AddHTTP2Flag adds --disable-http2-serving, which upstream's kubelet does not have.
func (o *TLSOptions) AddHTTP2Flag(fs *pflag.FlagSet) {
	fs.BoolVar(&o.DisableHTTP2, "disable-http2-serving", o.DisableHTTP2, "speak HTTP/1.1 only")
}

var tlsVersions = map[string]uint16{"": tls.VersionTLS12, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13}

// Apply sets a configuration to what the flags say, or returns which of them is not
// possible.
func (o *TLSOptions) Apply(c *tls.Config) error {
	version, ok := tlsVersions[o.MinVersion]
	if !ok {
		return fmt.Errorf("--tls-min-version=%s: only VersionTLS12 and VersionTLS13 are supported", o.MinVersion)
	}
	c.MinVersion = version
	suites := slices.Concat(tls.CipherSuites(), withoutForwardSecrecy())
	for _, name := range o.CipherSuites {
		// Many hardening guides have two of the names without their ending; upstream accepts
		// these too.
		i := slices.IndexFunc(suites, func(s *tls.CipherSuite) bool {
			return s.Name == name || strings.HasSuffix(name, "_CHACHA20_POLY1305") && s.Name == name+"_SHA256"
		})
		if i < 0 {
			return fmt.Errorf("--tls-cipher-suites=%s: unknown or insecure", name)
		}
		c.CipherSuites = append(c.CipherSuites, suites[i].ID)
	}
	for _, curve := range o.Curves {
		c.CurvePreferences = append(c.CurvePreferences, tls.CurveID(curve))
	}
	if o.DisableHTTP2 {
		c.NextProtos = []string{"http/1.1"}
	}
	return nil
}

// withoutForwardSecrecy are suites that Go no longer chooses by default, and that
// hardening guides (CIS) and node installers list beside the good ones. They are
// sound, except that anyone who obtains the key can read what was recorded before.
func withoutForwardSecrecy() []*tls.CipherSuite {
	return slices.DeleteFunc(tls.InsecureCipherSuites(), func(s *tls.CipherSuite) bool {
		return s.ID != tls.TLS_RSA_WITH_AES_128_GCM_SHA256 && s.ID != tls.TLS_RSA_WITH_AES_256_GCM_SHA384
	})
}

// Validate returns an error if a flag has a value that is not possible.
func (o *TLSOptions) Validate() error { return o.Apply(&tls.Config{}) }

// Serve returns the configuration of a server with the certificate in the given
// files, which are read again when they change, and with what the flags say. It asks clients for
// certificates of the given authorities, nil for none; who authenticates requests verifies them, since a
// client with a certificate of somebody else's may have a good token.
func (o *TLSOptions) Serve(certFile, keyFile string, clients *pki.Authorities, clock clock.PassiveClock,
	logger *zap.Logger) (*tls.Config, error) {
	shown, err := Certificate(certFile, keyFile, clock, logger)
	if err != nil {
		return nil, err
	}
	return o.Show(shown.GetCertificate, clients)
}

// Certificate is pki.NewReloader, with changes that can't be taken, and a certificate that has
// expired, in the log.
func Certificate(certFile, keyFile string, clock clock.PassiveClock, logger *zap.Logger) (*pki.Reloader, error) {
	shown, err := pki.NewReloader(certFile, keyFile, clock)
	if err != nil {
		return nil, err
	}
	shown.Tell(LogFileProblems(logger))
	return shown, nil
}

// Show is Serve for a certificate that is not in files.
func (o *TLSOptions) Show(shown func(*tls.ClientHelloInfo) (*tls.Certificate, error), clients *pki.Authorities) (*tls.Config, error) {
	c := pki.ServerTLS(shown)
	if err := o.Apply(c); err != nil || clients == nil {
		return c, err
	}
	pki.TakeClients(c, tls.RequestClientCert, clients.PEM)
	return c, nil
}

// ClientAuthorities is pki.NewAuthorities, with changes of the file that can't be taken in the log.
// It is nil if file is "".
func ClientAuthorities(what, file string, clock clock.PassiveClock, logger *zap.Logger) (*pki.Authorities, error) {
	if file == "" {
		return nil, nil
	}
	authorities, err := pki.NewAuthorities(what, file, clock)
	if err != nil {
		return nil, err
	}
	authorities.Tell(LogFileProblems(logger))
	return authorities, nil
}

// LogFileProblems logs what is wrong with certificates that are in use (see pki.Complaints).
func LogFileProblems(logger *zap.Logger) func(error) {
	return func(err error) {
		logger.Error("a certificate, an authority or a kubeconfig in use needs attention", zap.Error(err))
	}
}
