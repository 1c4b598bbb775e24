package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

var addressTypes = []string{"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"}

// Complete fills in options that follow from others.
func (o *Options) Complete() {
	o.Controllers = currentNames(o.Controllers)
	if o.BindAddress == "" {
		o.BindAddress = o.defaultBindAddress()
	}
	o.EtcdPrefix = path.Join("/", o.EtcdPrefix) // registry and /registry/ are /registry, as upstream
	if o.CertDir == "" {
		o.CertDir = filepath.Join(o.DataDir, "pki")
	}
	if o.RootCAFile == "" {
		o.RootCAFile = o.ClientCAFile
	}
	if len(o.APIAudiences) == 0 {
		o.APIAudiences = slices.Clone(o.ServiceAccountIssuers)
	}
}

// defaultBindAddress is an address at which others reach what is advertised, if anything is; else
// nobody does.
func (o *Options) defaultBindAddress() string {
	switch own, err := netip.ParseAddr(o.AdvertiseAddress); {
	case err != nil:
		return "127.0.0.1"
	case own.Is4():
		return "0.0.0.0"
	}
	return "::"
}

// Validate returns everything that is wrong with the options, each error
// naming its flag. It changes nothing.
func (o *Options) Validate(controllers []string) error {
	return errors.Join(
		o.validateServing(),
		o.validateStorage(),
		o.validateIdentities(),
		o.validateAuthorization(),
		o.ClusterSigning.validate(),
		o.validateControllers(controllers),
		o.validateServices(),
		o.validateNodeRanges(),
		together("--kubelet-client-certificate", o.KubeletClientCertificate, "--kubelet-client-key", o.KubeletClientKey),
		o.validateServiceAccounts(),
		o.AccountTokens.validate(),
		o.Aggregation.validate(),
		o.Audit.validate(),
		o.Encryption.validate(),
		o.Operation.validate(),
		known("--kubelet-preferred-address-types", o.KubeletPreferredAddressTypes, addressTypes),
	)
}

func (o *Options) validateServing() error {
	var errs []error
	if net.ParseIP(o.BindAddress) == nil {
		errs = append(errs, fmt.Errorf("--bind-address=%s: not an IP address", o.BindAddress))
	}
	if ip := net.ParseIP(o.AdvertiseAddress); o.AdvertiseAddress != "" && (ip == nil || ip.IsUnspecified() || ip.IsLoopback()) {
		errs = append(errs, fmt.Errorf("--advertise-address=%s: not an address that others can reach", o.AdvertiseAddress))
	}
	if o.SecurePort < 0 || o.SecurePort > 65535 {
		errs = append(errs, fmt.Errorf("--secure-port=%d: not a port (0 to 65535)", o.SecurePort))
	}
	errs = append(errs, together("--tls-cert-file", o.TLSCertFile, "--tls-private-key-file", o.TLSKeyFile))
	for _, limit := range []struct {
		flag  string
		value int64
		least int64
	}{
		{"--max-requests-inflight", int64(o.MaxRequestsInFlight), 0},
		{"--max-mutating-requests-inflight", int64(o.MaxMutatingRequestsInFlight), 0},
		{"--max-request-body-bytes", o.MaxRequestBodyBytes, 1},
		{"--request-timeout", int64(o.RequestTimeout), 1},
		{"--shutdown-delay-duration", int64(o.ShutdownDelay), 0},
		{"--event-ttl", int64(o.EventTTL), 1},
		{"--livez-grace-period", int64(o.LivezGrace), 0},
		{"--etcd-healthcheck-timeout", int64(o.EtcdCheckTimeout), 1},
		{"--kubelet-timeout", int64(o.KubeletTimeout), 1},
		{"--min-request-timeout", int64(o.MinRequestTimeout), 1},
	} {
		if limit.value < limit.least {
			errs = append(errs, fmt.Errorf("%s: must be at least %d", limit.flag, limit.least))
		}
	}
	if o.EnablePriorityAndFairness && o.Seats() == 0 {
		errs = append(errs,
			errors.New("--max-requests-inflight, --max-mutating-requests-inflight: must not both be 0 with --enable-priority-and-fairness"))
	}
	return errors.Join(errs...)
}

// Seats are how many requests --enable-priority-and-fairness serves at once.
func (o *Options) Seats() int { return o.MaxRequestsInFlight + o.MaxMutatingRequestsInFlight }

// ServiceRanges are --service-cluster-ip-range and --service-node-port-range.
// There is one address range, or one per family.
func (o *Options) ServiceRanges() ([]netip.Prefix, utilnet.PortRange, error) {
	addresses, err := addressRanges(o.ServiceClusterIPRange)
	if err != nil {
		return nil, utilnet.PortRange{}, fmt.Errorf("--service-cluster-ip-range=%s: %w", o.ServiceClusterIPRange, err)
	}
	ports, err := utilnet.ParsePortRange(o.ServiceNodePortRange)
	if err == nil && (ports.Base < 1 || ports.Size < 1) {
		err = errors.New("not a range of ports (1 to 65535)")
	}
	if err != nil {
		return nil, utilnet.PortRange{}, fmt.Errorf("--service-node-port-range=%s: %w", o.ServiceNodePortRange, err)
	}
	return addresses, *ports, nil
}

func addressRanges(text string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for one := range strings.SplitSeq(text, ",") {
		r, err := netip.ParsePrefix(one)
		switch {
		case err != nil:
			return nil, err
		case r.Addr().Is4() && (r.Bits() > 29 || r.Bits() < 8):
			return nil, fmt.Errorf("%s: not an IPv4 range between /8 and /29", r)
		case !r.Addr().Is4() && (r.Bits() > 125 || r.Bits() < 64):
			return nil, fmt.Errorf("%s: not an IPv6 range between /64 and /125", r)
		}
		ranges = append(ranges, r.Masked())
	}
	switch {
	case len(ranges) > 2:
		return nil, errors.New("must not contain more than two ranges")
	case len(ranges) == 2 && ranges[0].Addr().Is4() == ranges[1].Addr().Is4():
		return nil, errors.New("the two ranges must be of different IP family")
	}
	return ranges, nil
}

func (o *Options) validateServices() error {
	addresses, _, err := o.ServiceRanges()
	if err != nil {
		return err
	}
	own, err := netip.ParseAddr(o.AdvertiseAddress)
	if err == nil && own.Is4() != addresses[0].Addr().Is4() {
		return fmt.Errorf("--advertise-address=%s: must have the same IP family as --service-cluster-ip-range=%s, from which the service "+
			"kubernetes gets its address", own, o.ServiceClusterIPRange)
	}
	return nil
}

func (o *Options) validateStorage() error {
	var errs []error
	if o.DataDir == "" {
		errs = append(errs, errors.New("--data-dir: must not be empty"))
	}
	errs = append(errs, together("--etcd-certfile", o.EtcdCertFile, "--etcd-keyfile", o.EtcdKeyFile))
	for _, server := range o.EtcdServers {
		if !isEtcdURL(server) {
			errs = append(errs, fmt.Errorf("--etcd-servers=%s: not a URL of the form https://host:port or unix:///path", server))
		}
	}
	if len(o.EtcdServers) == 0 && (o.EtcdCAFile != "" || o.EtcdCertFile != "") {
		errs = append(errs, errors.New("--etcd-cafile, --etcd-certfile: require --etcd-servers"))
	}
	return errors.Join(errs...)
}

func (o *Options) validateServiceAccounts() error {
	if len(o.ServiceAccountIssuers) == 0 || slices.Contains(o.ServiceAccountIssuers, "") {
		return errors.New("--service-account-issuer: must not be empty")
	}
	if at := o.ServiceAccountJWKSURI; at != "" {
		if u, err := url.Parse(at); err != nil || u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("--service-account-jwks-uri=%s: not a URL of the form https://host/path", at)
		}
	}
	return nil
}

// isEtcdURL reports whether etcd's client can connect to it; unix sockets are
// included.
func isEtcdURL(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "http", "https":
		return u.Host != ""
	case "unix":
		return u.Path != ""
	}
	return false
}

func (o *Options) validateControllers(all []string) error {
	var names []string
	for _, c := range o.Controllers {
		if c != "*" {
			names = append(names, strings.TrimPrefix(c, "-"))
		}
	}
	return known("--controllers", names, all)
}

// Controller reports whether the housekeeping loop of that name is to run. A
// name takes precedence over the star.
func (o *Options) Controller(name string) bool {
	if slices.Contains(o.Controllers, "-"+name) {
		return false
	}
	return slices.Contains(o.Controllers, name) || slices.Contains(o.Controllers, "*")
}

func together(flagA, a, flagB, b string) error {
	if (a == "") != (b == "") {
		return fmt.Errorf("%s and %s must be given together", flagA, flagB)
	}
	return nil
}

func known(flag string, values, all []string) error {
	var errs []error
	for _, v := range values {
		if !slices.Contains(all, v) {
			errs = append(errs, fmt.Errorf("%s=%s: unknown; known are %s", flag, v, strings.Join(all, ", ")))
		}
	}
	return errors.Join(errs...)
}
