package delegatedauth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kctl/proto/clientauth"
)

// Options are the flags.
type Options struct {
	// AuthenticationKubeconfig and AuthorizationKubeconfig name the identities that ask who a
	// caller is and what they may do; if empty, the scheduler's own.
	AuthenticationKubeconfig string
	AuthorizationKubeconfig  string
	// SkipLookup leaves authorities that no flag names unknown.
	SkipLookup bool
	// TolerateLookupFailure starts without the cluster's authorities if they can't be read.
	TolerateLookupFailure bool

	ClientCAFile string
	// ProxyCAFile is for proxies that name the user in headers. AllowedNames and Headers count
	// only if it is set; otherwise the cluster's do.
	ProxyCAFile  string
	AllowedNames []string
	Headers      clientauth.HeaderNames

	// AlwaysAllowPaths need no authorization; one that ends in * is a prefix.
	AlwaysAllowPaths []string
	// How long answers are cached: about tokens, and about what users may and may not do.
	TokenTTL, AllowedTTL, DeniedTTL time.Duration
}

// NewOptions returns upstream's defaults.
func NewOptions() Options {
	const responsive = 10 * time.Second
	return Options{
		TolerateLookupFailure: true,
		Headers: clientauth.HeaderNames{
			Username: []string{"x-remote-user"}, Group: []string{"x-remote-group"}, ExtraPrefix: []string{"x-remote-extra-"},
		},
		AlwaysAllowPaths: []string{"/healthz", "/readyz", "/livez"},
		TokenTTL:         responsive, AllowedTTL: responsive, DeniedTTL: responsive,
	}
}

// AddFlags binds the flags to fs.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.AuthenticationKubeconfig, "authentication-kubeconfig", o.AuthenticationKubeconfig,
		"kubeconfig of a user who may create tokenreviews and read the ConfigMap extension-apiserver-authentication in "+
			"kube-system (default: --kubeconfig)")
	fs.BoolVar(&o.SkipLookup, "authentication-skip-lookup", o.SkipLookup,
		"don't look up in the cluster which authorities of clients and proxies to trust where --client-ca-file and "+
			"--requestheader-client-ca-file don't say")
	fs.BoolVar(&o.TolerateLookupFailure, "authentication-tolerate-lookup-failure", o.TolerateLookupFailure,
		"start even if that lookup fails; until it succeeds, certificates then count as none")
	fs.DurationVar(&o.TokenTTL, "authentication-token-webhook-cache-ttl", o.TokenTTL, "how long to cache whose a token is")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile, "CA of client certificates (default: looked up in the cluster)")
	fs.StringVar(&o.ProxyCAFile, "requestheader-client-ca-file", o.ProxyCAFile,
		"CA of proxies that may name the user in request headers (default: looked up in the cluster, with the names and headers)")
	fs.StringSliceVar(&o.AllowedNames, "requestheader-allowed-names", o.AllowedNames,
		"common names allowed in these proxies' certificates (default: any signed by the CA)")
	fs.StringSliceVar(&o.Headers.Username, "requestheader-username-headers", o.Headers.Username, "headers with the user's name")
	fs.StringSliceVar(&o.Headers.UID, "requestheader-uid-headers", o.Headers.UID, "headers with the user's uid; X-Remote-Uid is common")
	fs.StringSliceVar(&o.Headers.Group, "requestheader-group-headers", o.Headers.Group, "headers with the user's groups")
	fs.StringSliceVar(&o.Headers.ExtraPrefix, "requestheader-extra-headers-prefix", o.Headers.ExtraPrefix,
		"prefixes of headers with more about the user")
	fs.StringVar(&o.AuthorizationKubeconfig, "authorization-kubeconfig", o.AuthorizationKubeconfig,
		"kubeconfig of a user who may create subjectaccessreviews (default: --kubeconfig)")
	fs.StringSliceVar(&o.AlwaysAllowPaths, "authorization-always-allow-paths", o.AlwaysAllowPaths,
		"paths that anyone may use without authorization; PREFIX* matches all paths with that prefix")
	fs.DurationVar(&o.AllowedTTL, "authorization-webhook-cache-authorized-ttl", o.AllowedTTL, "how long to cache that a user may do something")
	fs.DurationVar(&o.DeniedTTL, "authorization-webhook-cache-unauthorized-ttl", o.DeniedTTL,
		"how long to cache that a user may not do something")
}

// Validate returns an error if a flag has a value that is not possible.
func (o *Options) Validate() error {
	var errs []error
	for flag, values := range map[string][]string{
		"allowed-names": o.AllowedNames, "username-headers": o.Headers.Username, "uid-headers": o.Headers.UID,
		"group-headers": o.Headers.Group, "extra-headers-prefix": o.Headers.ExtraPrefix,
	} {
		if slices.ContainsFunc(values, func(value string) bool { return strings.TrimSpace(value) == "" }) {
			errs = append(errs, fmt.Errorf("--requestheader-%s: values must not be empty", flag))
		}
	}
	if uid := o.Headers.UID; len(uid) > 0 && !slices.ContainsFunc(uid,
		func(name string) bool { return strings.EqualFold(name, "X-Remote-Uid") }) {
		errs = append(errs, errors.New("--requestheader-uid-headers: must contain X-Remote-Uid, which API servers use"))
	}
	for _, path := range o.AlwaysAllowPaths {
		if i := strings.IndexByte(path, '*'); i >= 0 && i < len(path)-1 {
			errs = append(errs, fmt.Errorf("--authorization-always-allow-paths=%s: * is allowed at the end only", path))
		}
	}
	return errors.Join(errs...)
}
