package operations_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"kctl/test/harness"
)

// observability is a file of deploy/observability.
func observability(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(harness.Root(), "deploy", "observability", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// expressions are the PromQL expressions of the rules and of the dashboard, by
// where they are; own are the names of the recording rules.
func expressions(t *testing.T) (all map[string]string, own map[string]bool) {
	t.Helper()
	all, own = map[string]string{}, map[string]bool{}
	var rules struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Record, Alert, Expr, For string
				Labels, Annotations      map[string]string
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(observability(t, "rules.yml"), &rules); err != nil {
		t.Fatal(err)
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			all["rule "+rule.Record+rule.Alert] = rule.Expr
			own[rule.Record] = true
			if rule.Alert == "" {
				continue
			}
			if err := runbook(rule.Annotations["runbook_url"]); err != nil || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" {
				t.Errorf("alert %s does not say how bad it is, what it is and what to do: %v", rule.Alert, err)
			}
		}
	}
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(observability(t, "dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		for i, target := range panel.Targets {
			all[fmt.Sprintf("panel %s, %d", panel.Title, i+1)] = target.Expr
		}
	}
	return all, own
}

var notInAnchors = regexp.MustCompile(`[^a-z0-9 -]`)

// runbook returns an error unless the link leads to a section of the
// documentation.
func runbook(link string) error {
	file, anchor, _ := strings.Cut(link, "#")
	text, err := os.ReadFile(filepath.Join(harness.Root(), file))
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok && strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(heading), ""), " ", "-") == anchor {
			return nil
		}
	}
	return fmt.Errorf("%s: there is no such section", link)
}

var (
	notMetrics = regexp.MustCompile(`"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(by|without|on|ignoring|group_left|group_right) *\([^)]*\)`)
	nameOrCall = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]* *\(?`)
)

// metricsOf are the metrics in a PromQL expression: what is left without
// labels, ranges, grouping, calls and operators.
func metricsOf(expression string) []string {
	var all []string
	for _, word := range nameOrCall.FindAllString(notMetrics.ReplaceAllString(expression, " "), -1) {
		word = strings.TrimSpace(word)
		if !strings.HasSuffix(word, "(") && !slices.Contains([]string{"and", "or", "unless", "bool", "offset"}, word) {
			all = append(all, word)
		}
	}
	return all
}

func TestMetricsOf(t *testing.T) {
	for expression, want := range map[string][]string{
		`histogram_quantile(0.99, sum by (le, verb) (rate(a_bucket{verb!~"X|Y"}[5m])))`: {"a_bucket"},
		`count(up{job="x"} == 1) <= floor(count(a:b) / 2) + 1 and absent(c)`:            {"up", "a:b", "c"},
	} {
		if got := metricsOf(expression); !slices.Equal(got, want) {
			t.Errorf("%s names %v, want %v", expression, got, want)
		}
	}
}

// TestMetricsAreThere scrapes every program of a cluster that runs a pod, as
// prometheus.yml does, and looks for every metric that the rules and the
// dashboard use.
func TestMetricsAreThere(t *testing.T) {
	t.Parallel()
	m := newMembers(t, 1)
	m.start()
	c := harness.Start(t, harness.Options{Flags: []string{"--etcd-servers", m.endpoints()}})
	c.Create(harness.Pod("one", harness.Demo))
	c.AwaitRunning("one")

	ports, certificate := settings(t, c), prometheusCertificate(t, c)
	urls := []string{m.all[0].client, "http://" + startBalancer(t, c)}
	for _, port := range []int{c.Port, ports.Scheduler, ports.Kubelet} {
		urls = append(urls, fmt.Sprintf("https://127.0.0.1:%d", port))
	}
	all, own := expressions(t)
	// Some metrics come only after work that the pod's status does not wait for.
	harness.Eventually(t, 2*time.Minute, func() error {
		there := map[string]bool{
			"up": true, // made by Prometheus itself
			// Of kubelets that rotate certificates, which those of kctl up don't.
			"kubelet_certificate_manager_client_ttl_seconds": true, "kubelet_certificate_manager_server_ttl_seconds": true,
			// Of API servers that audit (--audit-policy-file).
			"apiserver_audit_error_total": true, "apiserver_audit_requests_rejected_total": true,
			// Of node_exporter.
			"node_systemd_unit_state": true, "node_systemd_timer_last_trigger_seconds": true,
		}
		for _, url := range urls {
			if err := scrape(c, append(certificate, url+"/metrics"), there); err != nil {
				return fmt.Errorf("%s: %w", url, err)
			}
		}
		var missing []error
		for _, where := range slices.Sorted(maps.Keys(all)) {
			named := metricsOf(all[where])
			if len(named) == 0 {
				missing = append(missing, fmt.Errorf("%s names no metric: %s", where, all[where]))
			}
			for _, name := range named {
				if !there[name] && !own[name] {
					missing = append(missing, fmt.Errorf("%s uses %s, which no program exposes", where, name))
				}
			}
		}
		return errors.Join(missing...)
	})
	verbosity(t, c, ports)
}

// scrape adds the names of a program's metrics to there.
func scrape(c *harness.Cluster, args []string, there map[string]bool) error {
	out := c.Run("", "curl", append([]string{"--silent", "--show-error", "--fail", "--max-time", "20"}, args...)...)
	if out.Code != 0 {
		return errors.New(out.Stderr)
	}
	for line := range strings.SplitSeq(out.Stdout, "\n") {
		if name, _, ok := strings.Cut(line, " "); ok && name != "#" {
			name, _, _ = strings.Cut(name, "{")
			there[name] = true
		}
	}
	return nil
}

// prometheusCertificate gives the user prometheus the rights in rbac.yaml, and
// returns curl's arguments to be that user.
func prometheusCertificate(t *testing.T, c *harness.Cluster) []string {
	t.Helper()
	c.Kctl("apply", "-f", filepath.Join(harness.Root(), "deploy", "observability", "rbac.yaml"))
	return certificateOf(t, c, "prometheus")
}

// certificateOf makes a certificate for a user, as docs/operations.md says, and
// returns curl's arguments for it.
func certificateOf(t *testing.T, c *harness.Cluster, user string, groups ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	args := []string{"pki", "kubeconfig", "--dir", c.Dir, "--user", user, "--expires", "8760h", "--server", fmt.Sprintf("https://127.0.0.1:%d", c.Port), "--out",
		file}
	for _, group := range groups {
		args = append(args, "--group", group)
	}
	c.Kctl(args...)
	field := func(name string) string {
		path := filepath.Join(filepath.Dir(file), name)
		line := fmt.Sprintf(`%s config view --kubeconfig %s --raw -o 'jsonpath={.users[0].user.%s}' | base64 -d > %s`, c.Bin("kctl"), file, name, path)
		if out := c.Run("", "sh", "-euc", line); out.Code != 0 {
			t.Fatalf("%s: %s", line, out.Stderr)
		}
		return path
	}
	return []string{"--cacert", filepath.Join(c.Dir, "pki", "ca.crt"), "--cert", field("client-certificate-data"), "--key", field("client-key-data")}
}

type ports struct {
	Scheduler int `json:"schedulerPort"`
	Kubelet   int `json:"kubeletPort"`
}

func settings(t *testing.T, c *harness.Cluster) ports {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.Dir, "cluster.json"))
	if err != nil {
		t.Fatal(err)
	}
	var p ports
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// startBalancer starts a balancer in front of the cluster's API server and
// returns the address of its metrics.
func startBalancer(t *testing.T, c *harness.Cluster) string {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	cmd := exec.Command(c.Bin("balancer"), "--listen=127.0.0.1:0", "--healthz-bind-address="+address, fmt.Sprintf("--server=127.0.0.1:%d", c.Port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return address
}

// verbosity changes the programs' log levels while they run, and takes a
// profile of each, as a user with the right to do so and as one without.
func verbosity(t *testing.T, c *harness.Cluster, p ports) {
	t.Helper()
	admin, nobody := certificateOf(t, c, "admin", "system:masters"), certificateOf(t, c, "nobody")
	for program, port := range map[string]int{"apiserver": c.Port, "scheduler": p.Scheduler, "kubelet": p.Kubelet} {
		url := fmt.Sprintf("https://127.0.0.1:%d/debug/", port)
		ask := func(who []string, args ...string) string {
			t.Helper()
			out := c.Run("", "curl", slices.Concat([]string{"--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--max-time", "60"}, who, args)...)
			return out.Stdout
		}
		for _, level := range []string{"4", "0"} {
			if code := ask(admin, "-X", "PUT", "-d", level, url+"flags/v"); code != "200" {
				t.Errorf("%s: verbosity %s: %s", program, level, code)
			}
		}
		if code := ask(nobody, "-X", "PUT", "-d", "4", url+"flags/v"); code != "403" {
			t.Errorf("%s: verbosity, without the right: %s", program, code)
		}
		if code := ask(admin, url+"pprof/heap"); code != "200" {
			t.Errorf("%s: profile: %s", program, code)
		}
		if code := ask(nobody, url+"pprof/heap"); code != "403" {
			t.Errorf("%s: profile, without the right: %s", program, code)
		}
	}
}
