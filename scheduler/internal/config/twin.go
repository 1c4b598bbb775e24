package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"kctl/proto/daemon"
	"kctl/proto/release"
)

// Serving are flags of how the port for health checks and metrics is served.
type Serving struct {
	CertDir         string
	DisableHTTP2    bool
	TLSMinVersion   string
	TLSCipherSuites []string
}

func (s *Serving) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.CertDir, "cert-dir", s.CertDir, "directory for the self-signed certificate that is served without --tls-cert-file (default: in memory)")
	fs.BoolVar(&s.DisableHTTP2, "disable-http2-serving", s.DisableHTTP2, "speak HTTP/1.1 only")
	fs.StringVar(&s.TLSMinVersion, "tls-min-version", s.TLSMinVersion, "least version of TLS that clients must speak: VersionTLS12 or VersionTLS13")
	fs.StringSliceVar(&s.TLSCipherSuites, "tls-cipher-suites", s.TLSCipherSuites, "cipher suites for TLS 1.2 (default: Go's)")
}

func (s *Serving) validate() error {
	_, versionErr := daemon.TLSVersion(s.TLSMinVersion)
	_, suitesErr := daemon.CipherSuites(s.TLSCipherSuites)
	return errors.Join(versionErr, suitesErr)
}

// twinFlag is a flag of kube-scheduler that changes nothing here.
type twinFlag struct {
	name, fallback string
	isBool         bool
	// refused says that a value other than the fallback is an error; else it comes
	// to a note. Either way why says the reason.
	refused bool
	why     string
}

const (
	notHeldBack   = "requests are not held back here; the API server's limits do that"
	nobodySpeaks  = "callers show a certificate or a token of their own; nobody may name users for them"
	askedAnew     = "the API server is asked each time"
	nothingLooked = "nothing is looked up in the cluster; --client-ca-file says whose certificates count"
	allTold       = "all metrics are told; leave some out where they are scraped"
	oneStream     = "the log is one stream of lines, written at once"
	oneVersion    = "this scheduler is of Kubernetes 1.37"
)

var twinFlags = []twinFlag{
	{name: "kube-api-qps", fallback: "50", why: notHeldBack},
	{name: "kube-api-burst", fallback: "100", why: notHeldBack},
	{name: "kube-api-content-type", fallback: "application/vnd.kubernetes.protobuf", why: "application/json is spoken"},
	{name: "authentication-skip-lookup", fallback: "false", isBool: true, why: nothingLooked},
	{name: "authentication-tolerate-lookup-failure", fallback: "true", isBool: true, why: nothingLooked},
	{name: "authentication-token-webhook-cache-ttl", fallback: "10s", why: askedAnew},
	{name: "authorization-webhook-cache-authorized-ttl", fallback: "10s", why: askedAnew},
	{name: "authorization-webhook-cache-unauthorized-ttl", fallback: "10s", why: askedAnew},
	{name: "permit-address-sharing", fallback: "false", isBool: true, why: "it always is"},
	{name: "log-flush-frequency", fallback: "5s", why: oneStream},
	{name: "log-json-info-buffer-size", fallback: "0", refused: true, why: oneStream},
	{name: "log-json-split-stream", fallback: "false", isBool: true, refused: true, why: oneStream},
	{name: "log-text-info-buffer-size", fallback: "0", refused: true, why: oneStream},
	{name: "log-text-split-stream", fallback: "false", isBool: true, refused: true, why: oneStream},
	{name: "vmodule", refused: true, why: "-v holds for all of the program"},
	{name: "permit-port-sharing", fallback: "false", isBool: true, refused: true, why: "who asks could not tell which scheduler answers"},
	{name: "http2-max-streams-per-connection", fallback: "0", refused: true, why: "Go's bound holds"},
	{name: "tls-curve-preferences", refused: true, why: "Go's are taken"},
	{name: "tls-sni-cert-key", refused: true, why: "--tls-cert-file can have all names"},
	{name: "requestheader-client-ca-file", refused: true, why: nobodySpeaks},
	{name: "requestheader-allowed-names", refused: true, why: nobodySpeaks},
	{name: "requestheader-extra-headers-prefix", fallback: "x-remote-extra-", refused: true, why: nobodySpeaks},
	{name: "requestheader-group-headers", fallback: "x-remote-group", refused: true, why: nobodySpeaks},
	{name: "requestheader-uid-headers", refused: true, why: nobodySpeaks},
	{name: "requestheader-username-headers", fallback: "x-remote-user", refused: true, why: nobodySpeaks},
	{name: "allow-metric-labels", refused: true, why: allTold},
	{name: "allow-metric-labels-manifest", refused: true, why: allTold},
	{name: "disabled-metrics", refused: true, why: allTold},
	{name: "show-hidden-metrics-for-version", refused: true, why: "none is hidden"},
	{name: "emulated-version", fallback: "kube=1.37", refused: true, why: oneVersion},
	{name: "min-compatibility-version", fallback: "kube=1.36", refused: true, why: oneVersion},
}

func addTwinFlags(fs *pflag.FlagSet) {
	for _, f := range twinFlags {
		usage := "taken, and changes nothing: " + f.why
		if f.refused {
			usage = "only as it is: " + f.why
		}
		fs.String(f.name, f.fallback, usage)
		if f.isBool {
			fs.Lookup(f.name).NoOptDefVal = "true"
		}
	}
}

// twins are the notes on flags that change nothing, and the errors about those
// that would have to.
func (o *Options) twins() (notes []string, err error) {
	var errs []error
	for _, f := range twinFlags {
		if !o.given(f.name) {
			continue
		}
		switch value := o.flags.Lookup(f.name).Value.String(); {
		case value == f.fallback:
		case f.refused:
			errs = append(errs, fmt.Errorf("--%s=%s: not supported: %s", f.name, value, f.why))
		default:
			notes = append(notes, "--"+f.name+": "+f.why)
		}
	}
	gates := map[string]string{}
	for name, value := range o.FeatureGates {
		gates[strings.TrimPrefix(name, "kube:")] = value
	}
	return notes, errors.Join(append(errs, release.CheckGates(gates, nil))...)
}
