package operations_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"kctl/test/harness"
)

// TestPromtool checks the files with Prometheus' own promtool, and tries the alerts that
// no fault in TestPrometheus sets off.
func TestPromtool(t *testing.T) {
	harness.NeedLong(t, "it needs Debian's prometheus")
	for _, args := range [][]string{
		{"check", "config", "--syntax-only", "prometheus.yml"}, {"check", "rules", "rules.yml"},
		{"test", "rules", filepath.Join(harness.Root(), "test", "operations", "testdata", "alerts.yml")},
	} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = filepath.Join(harness.Root(), "deploy", "observability")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// prometheus is a real Prometheus that scrapes a cluster by the files in
// deploy/observability.
type prometheus struct {
	t   *testing.T
	url string
}

// TestPrometheus has a Prometheus scrape a cluster with a certificate of its
// own. It is refused until rbac.yaml is applied, no panel of the dashboard is
// empty, and alerts come and go with their faults.
func TestPrometheus(t *testing.T) {
	harness.NeedLong(t, "it needs Debian's prometheus")
	m := newMembers(t, 1)
	m.start()
	c := harness.Start(t, harness.Options{Flags: []string{"--etcd-servers", m.endpoints(), "--apiserver-flags=--node-monitor-grace-period=25s"}})
	balancer := startBalancer(t, c)
	ports := settings(t, c)
	targets := map[string]string{
		"apiserver": fmt.Sprintf("127.0.0.1:%d", c.Port), "scheduler": fmt.Sprintf("127.0.0.1:%d", ports.Scheduler),
		"kubelet": fmt.Sprintf("127.0.0.1:%d", ports.Kubelet), "etcd": strings.TrimPrefix(m.all[0].client, "http://"), "balancer": balancer,
	}
	p := startPrometheus(t, c, targets)

	for _, job := range []string{"apiserver", "scheduler", "kubelet"} {
		p.target(job, "down", "403 Forbidden")
	}
	c.Kctl("apply", "-f", filepath.Join(harness.Root(), "deploy", "observability", "rbac.yaml"))
	for job := range targets {
		p.target(job, "up", "")
	}
	p.panels(c)
	p.quiet()

	p.in(t, "a kubelet is gone", func(p *prometheus) {
		c.Kill("kubelet")
		p.firing(`ProgramDown{job="kubelet"}`, `NodeNotReady`)
		c.Up()
		p.quiet()
	})
	p.in(t, "nobody schedules", func(p *prometheus) {
		c.Kill("scheduler")
		p.firing(`ProgramDown{job="scheduler"}`, `NobodySchedules`)
		c.Up()
		p.quiet()
	})
	p.in(t, "a pod finds no node", func(p *prometheus) {
		c.KctlInput(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nowhere"}, "spec": {"nodeSelector": {"there": "is-none"}, "containers": [{"name": "c", "image": "`+harness.Demo+`"}]}}`, "apply", "-f", "-")
		p.firing(`PodsWaitForANode`)
		c.Kctl("delete", "pod", "nowhere")
		p.quiet()
	})
	p.in(t, "the API server is gone", func(p *prometheus) {
		c.Kill("apiserver")
		p.firing(`ProgramDown{job="apiserver"}`, `NoApiserver`, `ServerOutOfBalance`)
		c.Up()
		p.quiet("ApiserverErrors") // errors at the start count for up to five minutes
	})
}

// waiting is how long a rule waits before it fires. Tests don't wait.
var waiting = regexp.MustCompile(`(?m)^( +for:) .*$`)

// startPrometheus starts a Prometheus with prometheus.yml, but with other
// addresses, files and intervals.
func startPrometheus(t *testing.T, c *harness.Cluster, targets map[string]string) *prometheus {
	t.Helper()
	var config map[string]any
	if err := yaml.Unmarshal(observability(t, "prometheus.yml"), &config); err != nil {
		t.Fatal(err)
	}
	config["global"] = map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"}
	files := certificateOf(t, c, "prometheus") // curl's arguments
	config["scrape_configs"] = slices.DeleteFunc(config["scrape_configs"].([]any), func(job any) bool {
		return job.(map[string]any)["job_name"] == "node" // no node_exporter is here
	})
	for _, job := range config["scrape_configs"].([]any) {
		job := job.(map[string]any)
		name := job["job_name"].(string)
		job["static_configs"] = []any{map[string]any{"targets": []string{targets[name]}}}
		if _, tls := job["tls_config"]; tls {
			job["tls_config"] = map[string]any{"ca_file": files[1], "cert_file": files[3], "key_file": files[5]}
		}
		if name == "etcd" { // etcd serves without certificates here
			job["scheme"] = "http"
			delete(job, "tls_config")
		}
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rules := waiting.ReplaceAll(observability(t, "rules.yml"), []byte("$1 1s"))
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "prometheus.yml"), text, 0o600),
		os.WriteFile(filepath.Join(dir, "rules.yml"), rules, 0o600)); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	log, err := os.Create(filepath.Join(c.Dir, "log", "prometheus.log")) // shown if the test fails
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return &prometheus{t: t, url: "http://" + address}
}

func (p *prometheus) in(t *testing.T, name string, part func(*prometheus)) {
	t.Run(name, func(t *testing.T) { part(&prometheus{t: t, url: p.url}) })
}

// ask sends a query to Prometheus' API.
func (p *prometheus) ask(path string, data any) error {
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/"+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Error string `json:"error"`
		Data  any    `json:"data"`
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Error != "" {
		return fmt.Errorf("%s: %w %s", path, err, answer.Error)
	}
	return nil
}

// target waits until a job's target has this health and this error.
func (p *prometheus) target(job, health, says string) {
	p.t.Helper()
	harness.Eventually(p.t, 2*time.Minute, func() error {
		var targets struct {
			ActiveTargets []struct {
				ScrapePool, Health, LastError string
			}
		}
		if err := p.ask("targets", &targets); err != nil {
			return err
		}
		for _, one := range targets.ActiveTargets {
			if one.ScrapePool == job && one.Health == health && strings.Contains(one.LastError, says) {
				return nil
			}
		}
		return fmt.Errorf("%s is not %s (%s): %+v", job, health, says, targets.ActiveTargets)
	})
}

// panels runs pods until every query of the rules and the dashboard returns
// numbers; an alert returns some only when something is wrong.
func (p *prometheus) panels(c *harness.Cluster) {
	p.t.Helper()
	all, _ := expressions(p.t)
	maps.DeleteFunc(all, func(where, _ string) bool {
		return strings.HasPrefix(where, "rule ") && !strings.HasPrefix(where, "rule kctl:")
	})
	runs := 0
	harness.Eventually(p.t, 4*time.Minute, func() error {
		runs++
		name := fmt.Sprintf("pod-%d", runs)
		c.Create(harness.Pod(name, harness.Demo))
		c.AwaitRunning(name)
		c.Kctl("delete", "pod", name, "--grace-period=1")
		var empty []error
		for _, where := range slices.Sorted(maps.Keys(all)) {
			query := strings.ReplaceAll(all[where], "$__rate_interval", "1m")
			if count, err := p.numbers(query); err != nil || count == 0 {
				empty = append(empty, fmt.Errorf("%s shows nothing: %s: %w", where, query, err))
			}
		}
		return errors.Join(empty...)
	})
	p.t.Logf("%d queries have answers after %d pods", len(all), runs)
}

// numbers is how many of a query's series have a number as value.
func (p *prometheus) numbers(query string) (count int, err error) {
	var answer struct {
		Result []struct {
			Value [2]any `json:"value"`
		} `json:"result"`
	}
	if err := p.ask("query?query="+url.QueryEscape(query), &answer); err != nil {
		return 0, err
	}
	for _, series := range answer.Result {
		text, _ := series.Value[1].(string)
		if value, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(value) {
			count++
		}
	}
	return count, nil
}

// alerts are the firing alerts with their summaries, as NAME{job="…"} if they
// are about a job.
func (p *prometheus) alerts() (map[string]string, error) {
	var answer struct {
		Alerts []struct {
			State               string
			Labels, Annotations map[string]string
		}
	}
	if err := p.ask("alerts", &answer); err != nil {
		return nil, err
	}
	firing := map[string]string{}
	for _, alert := range answer.Alerts {
		name := alert.Labels["alertname"]
		if name == "ProgramDown" {
			name += fmt.Sprintf("{job=%q}", alert.Labels["job"])
		}
		if alert.State == "firing" {
			firing[name] = alert.Annotations["summary"]
		}
	}
	return firing, nil
}

// firing waits until these alerts fire, each with a summary made from its
// template.
func (p *prometheus) firing(names ...string) {
	p.t.Helper()
	harness.Eventually(p.t, 4*time.Minute, func() error {
		alerts, err := p.alerts()
		if err != nil {
			return err
		}
		for _, name := range names {
			if summary := alerts[name]; summary == "" || strings.Contains(summary, "error") {
				return fmt.Errorf("%s does not fire, or says %q; there are %v", name, summary, alerts)
			}
		}
		return nil
	})
}

// quiet waits until no other alerts fire than those in but.
func (p *prometheus) quiet(but ...string) {
	p.t.Helper()
	// A rate over five minutes remembers that long.
	harness.Eventually(p.t, 7*time.Minute, func() error {
		alerts, err := p.alerts()
		if err != nil {
			return err
		}
		for _, name := range but {
			delete(alerts, name)
		}
		if len(alerts) > 0 {
			return fmt.Errorf("alerts fire: %v", alerts)
		}
		return nil
	})
}
