package compose_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kctl/test/harness"
)

// service is what the test reads of a service in the file.
type service struct {
	Image       string            `json:"image"`
	User        string            `json:"user"`
	ReadOnly    bool              `json:"read_only"`
	CapDrop     []string          `json:"cap_drop"`
	SecurityOpt []string          `json:"security_opt"`
	Restart     string            `json:"restart"`
	MemLimit    string            `json:"mem_limit"`
	Pids        int               `json:"pids_limit"`
	Ports       []string          `json:"ports"`
	Entrypoint  []string          `json:"entrypoint"`
	Command     []string          `json:"command"`
	Environment map[string]string `json:"environment"`
	Healthcheck struct {
		Test []string `json:"test"`
	} `json:"healthcheck"`
	Logging struct {
		Options map[string]string `json:"options"`
	} `json:"logging"`
	Volumes []string `json:"volumes"`
}

// TestFile checks what can be checked without an engine: every service is
// confined, sees no keys but its own, has a health check and a restart policy, and
// only flags that its program knows.
func TestFile(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(harness.Root(), folder, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]service `json:"services"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	ends := []string{"pki", "pki-etcd", "pki-scheduler"} // by themselves, when they have done their work
	for _, name := range append(slices.Clone(services), ends...) {
		s, ok := file.Services[name]
		if !ok {
			t.Errorf("there is no %s", name)
			continue
		}
		if !confined(s) {
			t.Errorf("%s is not confined: %+v", name, s)
		}
		if len(s.Ports) > 0 != (name == "balancer") {
			t.Errorf("%s has ports %v", name, s.Ports)
		}
		if got := s.keys(); !slices.Equal(got, keys[name]) {
			t.Errorf("%s has the keys of %v, want %v", name, got, keys[name])
		}
		if !slices.Contains(ends, name) && (s.Restart != "unless-stopped" || len(s.Healthcheck.Test) < 3) {
			t.Errorf("%s is not restarted or not checked: %q, %v", name, s.Restart, s.Healthcheck.Test)
		}
		flagsAreKnown(t, name, s)
	}
}

// keys are the volumes with keys that a service may see. Those with the cluster's authority
// are the API servers', which sign, and of those who make the keys and give them out.
var keys = map[string][]string{
	"pki": {"pki:/etc/kctl"}, "pki-etcd": {"pki:/pki:ro", "pki-etcd:/etc/kctl"}, "pki-scheduler": {"pki:/pki:ro", "pki-scheduler:/etc/kctl"},
	"apiserver-1": {"pki:/etc/kctl:ro"}, "apiserver-2": {"pki:/etc/kctl:ro"},
	"etcd-1": {"pki-etcd:/etc/kctl:ro"}, "etcd-2": {"pki-etcd:/etc/kctl:ro"}, "etcd-3": {"pki-etcd:/etc/kctl:ro"},
	"scheduler-1": {"pki-scheduler:/etc/kctl:ro"}, "scheduler-2": {"pki-scheduler:/etc/kctl:ro"},
}

func (s service) keys() (volumes []string) {
	for _, volume := range s.Volumes {
		if strings.HasPrefix(volume, "pki") {
			volumes = append(volumes, volume)
		}
	}
	return volumes
}

func confined(s service) bool {
	return s.ReadOnly && s.User == "65532:65532" && slices.Equal(s.CapDrop, []string{"ALL"}) &&
		slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) && s.MemLimit != "" && s.Pids > 0 && s.Logging.Options["max-size"] != ""
}

var flagName = regexp.MustCompile(`^--([a-z0-9-]+)=`)

// flagsAreKnown asks the program itself.
func flagsAreKnown(t *testing.T, name string, s service) {
	t.Helper()
	program := strings.TrimSuffix(strings.TrimPrefix(s.Image, "kctl.local/"), ":${KCTL_VERSION:-latest}")
	if program == "etcd" {
		return // configured by its environment; TestAnyOneMayBeLost shows whether that works
	}
	args := []string{"--help"}
	if program == "kctl" {
		args = []string{"pki", s.Command[0], "--help"}
	}
	help, err := exec.Command(filepath.Join(harness.Bin(t), program), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, help)
	}
	for _, argument := range s.Command {
		match := flagName.FindStringSubmatch(argument)
		if match == nil {
			if program == "kctl" && !strings.HasPrefix(argument, "-") || argument == "--enable-bootstrap-token-auth" {
				continue
			}
			t.Errorf("%s: %q is no flag", name, argument)
			continue
		}
		if !regexp.MustCompile(`--` + match[1] + `[ =]`).Match(help) {
			t.Errorf("%s has no flag --%s", program, match[1])
		}
	}
}
