package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"kctl/kubectl/internal/certificates"
	"kctl/kubectl/internal/cluster"
	"kctl/kubectl/internal/command/frame"
	"kctl/proto/core"
	"kctl/proto/pki"
)

// configDir is where the systemd units' programs find their files.
const configDir = "/etc/kctl"

func newPKI(c *frame.CLI) *cobra.Command {
	cmd := frame.Group("pki", "Create, renew and check the certificates of a cluster")
	cmd.Long = `Create, renew and check the certificates of a cluster: CAs, certificates
and keys in DIR/pki, laid out as kubeadm does, and kubeconfigs in DIR.`
	cmd.AddCommand(newPKIInit(c), newPKIRenew(c), newPKICheck(c), newPKICopy(c), newPKIKubeconfig(c))
	return cmd
}

// pkiOptions are the flags of `kctl pki init`.
type pkiOptions struct {
	dir, advertise, server, serviceCIDR, domain string
	hosts, etcdHosts                            []string
	expires, authorityExpires                   time.Duration
}

// asOwner says, for all that failed in a directory, what helps somebody who may not use its
// files.
func asOwner(dir string, err error) error {
	if err == nil {
		return nil
	}
	if keys := denied(dir); keys != nil {
		err = keys // once, and not for each of the files
	}
	if errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%w (run it as root, or choose a directory of your own with --dir)", err)
	}
	return err
}

// denied is why this user can read none of a directory's keys, if that is so.
func denied(dir string) (first error) {
	_ = filepath.WalkDir(dir+"/pki/", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".key" {
			var key *os.File
			if key, err = os.Open(path); err == nil {
				_, first = key.Close(), nil
				return fs.SkipAll
			}
		}
		if first == nil && errors.Is(err, syscall.EACCES) {
			first = err
		}
		return nil
	})
	return first
}

func newPKIInit(c *frame.CLI) *cobra.Command {
	var o pkiOptions
	cmd := &cobra.Command{
		Use: "init", Short: "Create a cluster's missing certificates, keys and kubeconfigs",
		Long: `Create a cluster's missing certificates, keys and kubeconfigs. Valid files are kept,
interrupted work is completed, and certificates that have expired or lack a requested
name are renewed with their existing keys. If existing files contradict each other,
nothing is changed.

For another machine of the control plane, copy pki/{ca,front-proxy-ca,etcd/ca}.{crt,key}
and pki/sa.{key,pub} to it, and run this there.`,
		Example: `  # One machine
  kctl pki init

  # Three, behind a load balancer, with etcd on each
  kctl pki init --hosts lb.example.org,192.168.10.1,192.168.10.2,192.168.10.3 \
    --etcd-hosts 192.168.10.1,192.168.10.2,192.168.10.3 --server https://lb.example.org:6443`,
		Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := o.directory(cmd.Flags().Changed("server"))
			if err != nil {
				return err
			}
			changes, err := d.Make(c.Clock.Now())
			printChanges(c.Out, changes)
			if err != nil {
				return asOwner(o.dir, err)
			}
			ca, err := os.ReadFile(d.Path(certificates.Authority + ".crt"))
			if err != nil {
				return err
			}
			hashes, err := certificates.Hashes(ca)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "\nThe API server in the kubeconfigs is %s.\nJoining nodes know the cluster by --discovery-token-ca-cert-hash %s\n",
				d.ServerOf("admin"), hashes[0])
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", configDir, "directory of the files")
	f.StringVar(&o.advertise, "advertise-address", "", "address of this machine's API server (default: the address of the default route)")
	f.StringSliceVar(&o.hosts, "hosts", nil, "additional names and addresses of the API servers: load balancers, other API servers")
	f.StringSliceVar(&o.etcdHosts, "etcd-hosts", nil, "names and addresses of etcd's members, in addition to this machine's")
	f.StringVarP(&o.server, "server", "s", "", "URL of the API server, for kubeconfigs (default https://ADVERTISE-ADDRESS:6443)")
	f.StringVar(&o.serviceCIDR, "service-cidr", "10.0.0.0/24",
		"the API server's --service-cluster-ip-range; its first address is that of the API server inside the cluster")
	f.StringVar(&o.domain, "service-dns-domain", "cluster.local", "DNS domain of the cluster")
	f.DurationVar(&o.expires, "expires", certificates.Lasts, "lifetime of certificates")
	f.DurationVar(&o.authorityExpires, "ca-expires", certificates.AuthorityLasts, "lifetime of CAs")
	return cmd
}

func (o *pkiOptions) directory(serverGiven bool) (*certificates.Directory, error) {
	advertise := o.advertise
	if advertise == "" {
		own, err := core.OwnAddress()
		if err != nil {
			return nil, fmt.Errorf("%w; set it with --advertise-address", err)
		}
		advertise = own.String()
	}
	if net.ParseIP(advertise) == nil {
		return nil, fmt.Errorf("--advertise-address=%s: not an IP address", advertise)
	}
	service, err := certificates.ServiceAddress(o.serviceCIDR)
	if err != nil {
		return nil, fmt.Errorf("--service-cidr=%s: not a range of addresses", o.serviceCIDR)
	}
	if o.expires <= 0 || o.authorityExpires < o.expires {
		return nil, errors.New("--expires must be positive and at most --ca-expires")
	}
	for _, host := range append(o.hosts, o.etcdHosts...) {
		if host == "" || strings.ContainsAny(host, "/ ") || net.ParseIP(host) == nil && strings.Contains(host, ":") {
			return nil, fmt.Errorf("host %q: not a host name or IP address (leave out the scheme and the port)", host)
		}
	}
	server := cmp.Or(o.server, "https://"+net.JoinHostPort(advertise, "6443"))
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("--server=%s: want https://HOST:PORT", server)
	}
	own := certificates.Hosts{advertise}
	if name, err := os.Hostname(); err == nil && name != "localhost" {
		own = append(own, name)
	}
	api := append(certificates.ServiceNames(o.domain), service.String())
	api = append(append(api, own...), o.hosts...)
	if serverGiven {
		api = append(api, u.Hostname())
	}
	return &certificates.Directory{
		Dir: o.dir, Entries: certificates.ControlPlane(api, append(own, o.etcdHosts...)),
		Server: server, Lasts: o.expires, AuthorityLasts: o.authorityExpires,
	}, nil
}

func printChanges(out io.Writer, changes []certificates.Change) {
	for _, change := range changes {
		fmt.Fprintf(out, "%s: %s\n", change.File, change.Done)
	}
}

// existingDirectory is a directory as it is, without new requirements.
func existingDirectory(dir string) *certificates.Directory {
	if d := cluster.Certificates(dir); d != nil {
		return d
	}
	return &certificates.Directory{Dir: dir, Entries: certificates.ControlPlane(nil, nil)}
}

const expiringWithin = "expiring-within"

func newPKIRenew(c *frame.CLI) *cobra.Command {
	var dir string
	var expires, within time.Duration
	cmd := &cobra.Command{
		Use: "renew (all | NAME...)", Short: "Renew certificates",
		Long: `Renew certificates, with their existing keys, subjects and names. CAs are not
renewed. Running programs pick up the new files by themselves.

With --expiring-within, only what ends within this time is renewed, or, of certificates
that are made for a shorter life, what has less than a third of it left: the command can
run every day. The exit code is 1 if anything could not be renewed.`,
		Example: `  kctl pki renew all
  kctl pki renew all --expiring-within=2160h
  kctl pki renew apiserver etcd/server

  # Those of kctl up
  kctl pki renew all --dir /var/lib/kctl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the certificates to renew, or all; `kctl pki check` lists them")
			}
			if len(args) == 1 && args[0] == "all" {
				args = nil
			}
			if expires <= 0 {
				return errors.New("--expires must be positive")
			}
			d := existingDirectory(dir)
			d.Lasts = expires
			renew := d.Renew
			if cmd.Flags().Changed(expiringWithin) {
				if within <= 0 {
					return errors.New("--" + expiringWithin + " must be positive")
				}
				renew = func(names []string, now time.Time) ([]certificates.Change, error) {
					return d.RenewExpiring(names, within, now)
				}
			}
			changes, err := renew(args, c.Clock.Now())
			printChanges(c.Out, changes)
			return asOwner(dir, err)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", configDir, "directory of the files")
	cmd.Flags().DurationVar(&expires, "expires", certificates.Lasts, "lifetime of the renewed certificates, from now")
	cmd.Flags().DurationVar(&within, expiringWithin, 0, "renew only what expires within this time (default: all, however long they last)")
	return cmd
}

func newPKICheck(c *frame.CLI) *cobra.Command {
	var dir, output string
	var warn time.Duration
	cmd := &cobra.Command{
		Use: "check", Short: "Check the certificates and show when they expire",
		Long: `Check the certificates and show when they expire. The exit code is 1 if there is a
problem or a certificate expires within --warn.`,
		Example: `  kctl pki check
  kctl pki check --warn 1440h -o json`,
		Args: frame.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output=%s: only json is supported", output)
			}
			if err := denied(dir); err != nil {
				return asOwner(dir, err)
			}
			d := existingDirectory(dir)
			d.RenewBefore = warn
			findings, err := d.Check(c.Clock.Now())
			if err != nil {
				return err
			}
			if output == "json" {
				err = printJSON(c.Out, findings)
			} else {
				err = printFindings(c.Out, findings, c.Clock.Now())
			}
			if err != nil {
				return err
			}
			for _, f := range findings {
				if len(f.Problems) > 0 {
					return errors.New("some certificates have problems")
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", configDir, "directory of the files")
	cmd.Flags().DurationVar(&warn, "warn", 30*24*time.Hour, "warn if a certificate expires within this time")
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json (default: a table)")
	return cmd
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func printFindings(out io.Writer, findings []certificates.Finding, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tSUBJECT\tEXPIRES\tREMAINING\tAUTHORITY\tPROBLEMS")
	for _, f := range findings {
		expires, remaining := "-", "-"
		if !f.Expires.IsZero() {
			expires, remaining = f.Expires.UTC().Format(time.RFC3339), duration.HumanDuration(f.Expires.Sub(now))
			if f.Expires.Before(now) {
				remaining = "none"
			}
		}
		count := "-"
		if len(f.Problems) > 0 {
			count = fmt.Sprint(len(f.Problems))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, cmp.Or(f.Subject, "-"), expires, remaining, cmp.Or(f.Authority, "-"), count)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range findings {
		for _, problem := range f.Problems {
			fmt.Fprintf(out, "\n%s: %s\n", f.Name, problem)
		}
	}
	return nil
}

func newPKIKubeconfig(c *frame.CLI) *cobra.Command {
	var dir, user, server, file string
	var groups []string
	var expires time.Duration
	cmd := &cobra.Command{
		Use: "kubeconfig --user NAME", Short: "Create a kubeconfig with a client certificate for a user",
		Long: `Create a kubeconfig with a client certificate for a user. Certificates can't be
revoked: keep the lifetime short, and add only the groups that are needed.`,
		Example: `  # Someone who may look for a day, once a binding says so
  kctl pki kubeconfig --user alice --group developers --expires 24h --out alice.kubeconfig

  # For upstream's controller manager
  kctl pki kubeconfig --user system:kube-controller-manager --expires 8760h --out controller-manager.kubeconfig`,
		Args: frame.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if user == "" {
				return errors.New("--user is required: the name of the user")
			}
			if expires <= 0 {
				return errors.New("--expires must be positive")
			}
			d := existingDirectory(dir)
			d.Lasts, d.Server = expires, cmp.Or(server, d.ServerOf("admin"))
			data, err := d.Mint(certificates.User(user, user, groups...), c.Clock.Now())
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w (set the CA's directory with --dir; that of `kctl up` is in %s)", err, defaultDir)
			}
			if err != nil {
				return asOwner(dir, err)
			}
			if file != "" {
				return pki.WriteFile(file, data)
			}
			_, err = c.Out.Write(data)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", configDir, "directory of the CA")
	f.StringVar(&user, "user", "", "name of the user")
	f.StringSliceVar(&groups, "group", nil, "group of the user; may be repeated")
	f.DurationVar(&expires, "expires", 24*time.Hour, "lifetime of the certificate")
	f.StringVarP(&server, "server", "s", "", "URL of the API server (default: that in admin.kubeconfig)")
	f.StringVar(&file, "out", "", "file to write, readable only by its owner (default: standard output)")
	return cmd
}
