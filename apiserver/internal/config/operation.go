package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kctl/proto/daemon"
	"kctl/proto/leader"
	"kctl/proto/release"
)

// Operation are the flags for serving and operating the server.
type Operation struct {
	TLS            daemon.TLSOptions
	TLSSNICertKeys []string

	HTTP2MaxStreams int
	GoawayChance    float64
	CORSOrigins     []string
	HSTSDirectives  []string

	ShutdownSendRetryAfter bool
	CompactionInterval     time.Duration
	FeatureGates           map[string]string
	ContentionProfiling    bool
	TracingConfigFile      string
	EndpointReconciler     string
	RuntimeConfig          RuntimeConfig
	// AllowPrivileged is always true here: policies decide about privileged pods.
	AllowPrivileged bool

	LeaderElect leader.Flags // of the server that does the housekeeping
}

// The values of --endpoint-reconciler-type.
const (
	EndpointsByLease  = "lease"
	EndpointsByOthers = "none"
)

func operationDefaults() Operation {
	return Operation{
		CompactionInterval: 5 * time.Minute, AllowPrivileged: true, EndpointReconciler: EndpointsByLease,
		LeaderElect: leader.DefaultFlags("kctl-housekeeping"),
	}
}

func (o *Operation) addFlags(fs *pflag.FlagSet) {
	o.TLS.AddFlags(fs)
	o.TLS.AddHTTP2Flag(fs)
	fs.StringArrayVar(&o.TLSSNICertKeys, "tls-sni-cert-key", o.TLSSNICertKeys,
		"CERT,KEY or CERT,KEY:NAME,NAME: additional serving certificate for clients that ask for these names (default: the names in the "+
			"certificate); may be repeated")
	fs.IntVar(&o.HTTP2MaxStreams, "http2-max-streams-per-connection", o.HTTP2MaxStreams,
		"maximum concurrent requests, including watches, on one HTTP/2 connection (0 for 100)")
	fs.Float64Var(&o.GoawayChance, "goaway-chance", o.GoawayChance,
		"probability, 0 to .02, that a request makes the server ask its HTTP/2 client to reconnect, so that clients spread over several servers")
	fs.StringSliceVar(&o.CORSOrigins, "cors-allowed-origins", o.CORSOrigins,
		"regular expressions for origins whose web pages may use the API (CORS)")
	fs.StringSliceVar(&o.HSTSDirectives, "strict-transport-security-directives", o.HSTSDirectives,
		"directives for the Strict-Transport-Security header: max-age=SECONDS, includeSubDomains, preload")
	fs.BoolVar(&o.ShutdownSendRetryAfter, "shutdown-send-retry-after", o.ShutdownSendRetryAfter,
		"keep listening while shutting down, and answer new requests with 429 and Retry-After")
	fs.DurationVar(&o.CompactionInterval, "etcd-compaction-interval", o.CompactionInterval,
		"how often old revisions in etcd are compacted; 0 leaves compaction to others")
	daemon.PairsVar(fs, &o.FeatureGates, "feature-gates", "",
		"feature gates as NAME=true|false,…; most can only be set to their defaults, and a value that is not supported is an error")
	daemon.PairsVar(fs, (*map[string]string)(&o.RuntimeConfig), "runtime-config", "true",
		"API versions to serve: v1=true|false, GROUP/VERSION=true|false, or api/all, api/ga, api/beta, api/alpha for many; "+
			"the most specific setting wins")
	fs.BoolVar(&o.AllowPrivileged, "allow-privileged", o.AllowPrivileged,
		"allow privileged containers; can't be turned off here, use the Pod Security levels baseline or restricted instead")
	fs.BoolVar(&o.ContentionProfiling, "contention-profiling", o.ContentionProfiling,
		"with --profiling, also record contention for locks and channels")
	fs.StringVar(&o.TracingConfigFile, "tracing-config-file", o.TracingConfigFile,
		"file with a TracingConfiguration: the OpenTelemetry collector that gets spans, and the share of requests to trace")
	fs.StringVar(&o.EndpointReconciler, "endpoint-reconciler-type", o.EndpointReconciler,
		"how the endpoints of the service kubernetes are maintained: lease (each API server, for as long as it renews its lease) or none")
	o.LeaderElect.Add(fs, "elect one of several API servers to run the housekeeping loops")
}

// SNICertificate is one --tls-sni-cert-key.
type SNICertificate struct {
	CertFile, KeyFile string
	Names             []string // none for the certificate's
}

// SNICertificates are all --tls-sni-cert-key.
func (o *Operation) SNICertificates() ([]SNICertificate, error) {
	var out []SNICertificate
	for _, text := range o.TLSSNICertKeys {
		files, names, named := strings.Cut(text, ":")
		cert, key, ok := strings.Cut(files, ",")
		if !ok || cert == "" || key == "" || named && names == "" {
			return nil, fmt.Errorf("--tls-sni-cert-key=%s: must be of the form CERT,KEY or CERT,KEY:NAME,NAME", text)
		}
		c := SNICertificate{CertFile: cert, KeyFile: key}
		if named {
			c.Names = strings.Split(names, ",")
		}
		out = append(out, c)
	}
	return out, nil
}

// CORS compiles --cors-allowed-origins.
func (o *Operation) CORS() ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for _, text := range o.CORSOrigins {
		pattern, err := regexp.Compile(text)
		if err != nil || text == "" {
			return nil, fmt.Errorf("--cors-allowed-origins=%s: not a regular expression: %w", text, err)
		}
		anchored := strings.HasPrefix(text, "^") || strings.Contains(text, "//")
		if !anchored || !strings.HasSuffix(text, "$") && !strings.Contains(strings.TrimPrefix(text, "//"), ":") {
			return nil, fmt.Errorf(
				"--cors-allowed-origins=%s: must be anchored, at the start by ^ or //, at the end by $ or the : before the port", text)
		}
		out = append(out, pattern)
	}
	return out, nil
}

var maxAge = regexp.MustCompile(`^max-age=[0-9]+$`)

func (o *Operation) validate() error {
	_, sniErr := o.SNICertificates()
	_, corsErr := o.CORS()
	_, tracingErr := o.Tracing()
	errs := []error{o.TLS.Validate(), sniErr, corsErr, tracingErr, release.CheckGates(o.FeatureGates, nil), o.RuntimeConfig.validate(),
		o.LeaderElect.Validate()}
	if !o.AllowPrivileged {
		errs = append(errs,
			errors.New("--allow-privileged=false: not supported; use the Pod Security levels baseline or restricted to "+
				"forbid privileged containers"))
	}
	if o.EndpointReconciler != EndpointsByLease && o.EndpointReconciler != EndpointsByOthers {
		errs = append(errs, fmt.Errorf("--endpoint-reconciler-type=%s: only %s and %s are supported",
			o.EndpointReconciler, EndpointsByLease, EndpointsByOthers))
	}
	if o.HTTP2MaxStreams < 0 {
		errs = append(errs, errors.New("--http2-max-streams-per-connection: must not be negative"))
	}
	if o.GoawayChance < 0 || o.GoawayChance > 0.02 {
		errs = append(errs, fmt.Errorf("--goaway-chance=%v: must be between 0 and 0.02", o.GoawayChance))
	}
	if o.CompactionInterval < 0 {
		errs = append(errs, errors.New("--etcd-compaction-interval: must not be negative"))
	}
	for _, directive := range o.HSTSDirectives {
		if directive != "includeSubDomains" && directive != "preload" && !maxAge.MatchString(directive) {
			errs = append(errs,
				fmt.Errorf("--strict-transport-security-directives=%s: only max-age=SECONDS, includeSubDomains and preload are supported", directive))
		}
	}
	return errors.Join(errs...)
}
