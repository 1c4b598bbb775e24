package config

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func parse(t *testing.T, flags ...string) *Options {
	t.Helper()
	o := Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(flags); err != nil {
		t.Fatal(err)
	}
	o.Complete()
	return o
}

var loops = []string{"one", "two"}

func TestDefaultsAreValid(t *testing.T) {
	o := parse(t)
	if err := o.Validate(loops); err != nil {
		t.Fatal(err)
	}
	if o.AnonymousAuth || o.BindAddress != "127.0.0.1" || o.AuthorizationModes[0] != ModeRBAC {
		t.Errorf("not safe by default: %+v", o)
	}
	if len(o.APIAudiences) != 1 || o.APIAudiences[0] != o.ServiceAccountIssuers[0] {
		t.Errorf("audiences %v", o.APIAudiences)
	}
}

func TestWhatIsRefused(t *testing.T) {
	for flag, want := range map[string]string{
		"--authorization-mode=Webhook":                  "--authorization-mode=Webhook: requires --authorization-webhook-config-file",
		"--authorization-mode=ABAC":                     "--authorization-mode=ABAC: requires --authorization-policy-file",
		"--authorization-policy-file=x":                 "--authorization-policy-file: requires --authorization-mode=ABAC",
		"--authorization-webhook-version=v2":            "--authorization-webhook-version=v2: unknown; known are v1, v1beta1",
		"--authentication-token-webhook-cache-ttl=-1s":  "--authentication-token-webhook-cache-...ttl: must not be negative",
		"--requestheader-allowed-names=x":               "require --requestheader-client-ca-file",
		"--requestheader-client-ca-file=x":              "requires --requestheader-username-headers",
		"--cluster-signing-cert-file=x":                 "--cluster-signing-cert-file and --cluster-signing-key-file must be given together",
		"--cluster-signing-duration=0s":                 "--cluster-signing-duration",
		"--oidc-username-claim=email":                   "require --oidc-issuer-url",
		"--oidc-client-id=x":                            "require --oidc-issuer-url",
		"--oidc-issuer-url=https://id.test":             "requires --oidc-client-id",
		"--oidc-issuer-url=http://id.test":              "--oidc-issuer-url=http://id.test: not a URL of the form https://host/path",
		"--authorization-mode=RBAC,Root":                "--authorization-mode=Root: unknown mode",
		"--authorization-mode=RBAC,RBAC":                "must not be repeated",
		"--authorization-mode=":                         "at least one mode",
		"--bind-address=localhost":                      "--bind-address=localhost: not an IP address",
		"--secure-port=70000":                           "--secure-port=70000",
		"--tls-cert-file=x":                             "--tls-cert-file and --tls-private-key-file must be given together",
		"--etcd-servers=127.0.0.1:2379":                 "--etcd-servers=127.0.0.1:2379: not a URL",
		"--etcd-servers=unix:etcd.sock":                 "or unix:///path",
		"--etcd-cafile=x":                               "require --etcd-servers",
		"--max-request-body-bytes=0":                    "--max-request-body-bytes",
		"--allocate-node-cidrs":                         "--allocate-node-cidrs: requires --cluster-cidr",
		"--node-monitor-grace-period=500ms":             "--node-monitor-grace-period=500ms: must be at least 1s",
		"--cluster-cidr=10.0.0.0/8":                     "--cluster-cidr: requires --allocate-node-cidrs",
		"--controllers=three":                           "--controllers=three: unknown; known are one, two",
		"--service-account-issuer=":                     "--service-account-issuer",
		"--service-account-jwks-uri=http://example.com": "--service-account-jwks-uri",
		"--kubelet-preferred-address-types=IP":          "--kubelet-preferred-address-types=IP",
		"--service-account-max-token-expiration=5m":     "must be between 1 hour",
		"--endpoint-reconciler-type=master-count":       "--endpoint-reconciler-type=master-count: only lease and none",
		"--kubelet-timeout=0s":                          "--kubelet-timeout",
		"--kubelet-client-certificate=x":                "--kubelet-client-key must be given together",
	} {
		if err := parse(t, flag).Validate(loops); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flag, err, want)
		}
	}
}

func TestRangesOfNodes(t *testing.T) {
	for flags, want := range map[string]string{
		"--cluster-cidr=10.244.0.0/16":                                           "",
		"--cluster-cidr=10.0.0.0/8 --node-cidr-mask-size=20":                     "",
		"--cluster-cidr=10.244.0.0/16,fd00:1::/56":                               "",
		"--cluster-cidr=fd00:1::/56,10.244.0.0/16 --node-cidr-mask-size-ipv4=26": "",
		"--cluster-cidr=10.244.0.0/16 --leader-elect=false":                      "requires --leader-elect",
		"--cluster-cidr=10.244.0.0/16,10.245.0.0/16":                             "one IPv4 and one IPv6",
		"--cluster-cidr=10.244.0.0/16,fd00:1::/56,fd00:2::/56":                   "at most two ranges",
		"--cluster-cidr=10.244.0.0/16,fd00:1::/56 --node-cidr-mask-size=24":      "requires a single --cluster-cidr",
		"--cluster-cidr=10.244.0.0/16 --node-cidr-mask-size=8":                   "can't be divided into ranges of /8",
		"--cluster-cidr=10.244.0.0/16 --node-cidr-mask-size=-1":                  "can't be divided into ranges of /-1",
		"--cluster-cidr=10.0.0.0/8 --node-cidr-mask-size-ipv4=28":                "too many ranges of /28",
		"--cluster-cidr=10.244.0.1/16":                                           "the range is 10.244.0.0/16",
		"--cluster-cidr=10.244.0.0":                                              "not a range of addresses",
	} {
		err := parse(t, append(strings.Fields(flags), "--allocate-node-cidrs")...).Validate(loops)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
}

func TestRangesOfServices(t *testing.T) {
	const flag = "--service-cluster-ip-range="
	for flags, want := range map[string]string{
		flag + "10.96.0.0/12":                                        "",
		flag + "10.96.0.0/16,fd00:10:96::/112":                       "",
		flag + "fd00:10:96::/112":                                    "",
		flag + "fd00::/112,10.96.0.0/16":                             "",
		flag + "10.0.0.0/30":                                         "10.0.0.0/30: not an IPv4 range between /8 and /29",
		flag + "fd00::/48":                                           "fd00::/48: not an IPv6 range between /64 and /125",
		flag + "10.0.0.0/16,10.1.0.0/16":                             "the two ranges must be of different IP family",
		flag + "10.0.0.0/16,fd00::/64,fd01::/64":                     "must not contain more than two ranges",
		flag + "10.0.0.0/16,":                                        flag + "10.0.0.0/16,: netip.ParsePrefix",
		flag + "fd00::/64,10.0.0.0/16 --advertise-address=192.0.2.1": "--advertise-address=192.0.2.1: must have the same IP family as " + flag,
	} {
		err := parse(t, strings.Fields(flags)...).Validate(loops)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
}

func TestPrefixOfKeys(t *testing.T) {
	for given, want := range map[string]string{"/registry": "/registry", "registry": "/registry", "/a//b/": "/a/b", "": "/"} {
		if o := parse(t, "--etcd-prefix="+given); o.EtcdPrefix != want || o.Validate(loops) != nil {
			t.Errorf("--etcd-prefix=%s: %s, want %s: %v", given, o.EtcdPrefix, want, o.Validate(loops))
		}
	}
}

func TestFormerNamesOfControllers(t *testing.T) {
	o := parse(t, "--controllers=*,-csrsigning,tokencleaner")
	if got := strings.Join(o.Controllers, " "); got != "* -certificatesigningrequest-signing-controller token-cleaner-controller" {
		t.Errorf("got %s", got)
	}
}

// The flags in kubeadm's manifest of kube-apiserver.
func TestFlagsOfKubeadm(t *testing.T) {
	o := parse(t, "--advertise-address=192.0.2.1", "--allow-privileged=true", "--authorization-mode=Node,RBAC",
		"--client-ca-file=ca.crt", "--enable-admission-plugins=NodeRestriction", "--enable-bootstrap-token-auth=true",
		"--etcd-cafile=etcd/ca.crt", "--etcd-certfile=apiserver-etcd-client.crt", "--etcd-keyfile=apiserver-etcd-client.key",
		"--etcd-servers=https://127.0.0.1:2379,unix:///run/etcd.sock", "--kubelet-client-certificate=apiserver-kubelet-client.crt",
		"--kubelet-client-key=apiserver-kubelet-client.key", "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"--proxy-client-cert-file=front-proxy-client.crt", "--proxy-client-key-file=front-proxy-client.key",
		"--requestheader-allowed-names=front-proxy-client", "--requestheader-client-ca-file=front-proxy-ca.crt",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User", "--secure-port=6443",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local", "--service-account-key-file=sa.pub",
		"--service-account-signing-key-file=sa.key", "--service-cluster-ip-range=10.96.0.0/12",
		"--tls-cert-file=apiserver.crt", "--tls-private-key-file=apiserver.key")
	o.Complete()
	if err := o.Validate(loops); err != nil {
		t.Error(err)
	}
	if o.BindAddress != "0.0.0.0" {
		t.Errorf("listens on %s, where nobody reaches 192.0.2.1", o.BindAddress)
	}
}

func TestBindAddress(t *testing.T) {
	for flags, want := range map[string]string{
		"":                                "127.0.0.1",
		"--advertise-address=2001:db8::1": "::",
		"--advertise-address=192.0.2.1 --bind-address=192.0.2.1": "192.0.2.1",
		"--advertise-address=192.0.2.1 --bind-address=127.0.0.1": "127.0.0.1", // something else passes requests on
		"--advertise-address=somewhere":                          "127.0.0.1",
		"--bind-address=::":                                      "::",
	} {
		if got := parse(t, strings.Fields(flags)...).BindAddress; got != want {
			t.Errorf("%s: listens on %s, not %s", flags, got, want)
		}
	}
}

func TestControllers(t *testing.T) {
	for flags, want := range map[string][2]bool{
		"*":        {true, true},
		"*,-one":   {false, true},
		"two":      {false, true},
		"-one":     {false, false},
		"-one,*":   {false, true},
		"one,-one": {false, false},
	} {
		o := parse(t, "--controllers="+flags)
		if got := [2]bool{o.Controller("one"), o.Controller("two")}; got != want {
			t.Errorf("%s: %v, want %v", flags, got, want)
		}
	}
}

func TestOperationFlagsThatAreRefused(t *testing.T) {
	for flag, want := range map[string]string{
		"--tls-min-version=VersionTLS11":                 "only VersionTLS12 and VersionTLS13",
		"--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA":   "unknown or insecure",
		"--tls-sni-cert-key=only.crt":                    "CERT,KEY",
		"--allow-privileged=false":                       "the Pod Security levels",
		"--goaway-chance=0.5":                            "between 0 and 0.02",
		"--cors-allowed-origins=example.com":             "must be anchored",
		"--cors-allowed-origins=(":                       "not a regular expression",
		"--strict-transport-security-directives=forever": "only max-age=SECONDS",
		"--feature-gates=AllAlpha=true":                  "--feature-gates=AllAlpha=true: not supported",
		"--feature-gates=NoSuchGate=true":                "unknown feature gate",
		"--feature-gates=APIServerIdentity=false":        "can't be turned off",
		"--feature-gates=APIServerIdentity=perhaps":      "must be true or false",
		"--runtime-config=apps/v1=perhaps":               "--runtime-config=apps/v1=perhaps: must be true or false",
		"--runtime-config=api/some=true":                 "must name v1, GROUP/VERSION or one of",
		"--runtime-config=a/b/c=true":                    "must name v1, GROUP/VERSION or one of",
		"--runtime-config=api/all=false":                 "leaves no API to serve",
		"--leader-elect-lease-duration=1s":               "must be longer than",
		"--leader-elect-renew-deadline=2100ms":           "must be longer than 1.2 times the retryPeriod",
		"--encryption-provider-config-automatic-reload":  "requires --encryption-provider-config",
		"--audit-log-path=-":                             "--audit-policy-file: required",
		"--audit-log-mode=sometimes":                     "unknown; known are",
		"--audit-webhook-batch-max-size=0":               "must be between 1 and",
		"--audit-webhook-version=audit.k8s.io/v1beta1":   "only audit.k8s.io/v1",
	} {
		if err := parse(t, flag).Validate(loops); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flag, err, want)
		}
	}
	if err := parse(t, "--feature-gates=APIServerIdentity=true,AllAlpha=false,AllBeta=true").Validate(loops); err != nil {
		t.Errorf("gates as they are: %v", err)
	}
}

func TestAuthorizationConfigStandsAlone(t *testing.T) {
	for flags, wrong := range map[string]bool{
		"--authorization-config=/x":                                                 false,
		"--authorization-config=/x --authorization-policy-file=/y":                  false,
		"--authorization-config=/x --authorization-mode=RBAC":                       true,
		"--authorization-config=/x --authorization-webhook-config-file=/y":          true,
		"--authorization-config=/x --authorization-webhook-cache-authorized-ttl=1s": true,
	} {
		o, fs := Defaults(), pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.AddFlags(fs)
		if err := fs.Parse(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		o.Complete()
		if err := o.Validate(nil); (err != nil && strings.Contains(err.Error(), "--authorization-config can not be specified")) != wrong {
			t.Errorf("%s: %v", flags, err)
		}
	}
}
