package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
	"kctl/proto/leader"
	"kctl/scheduler/internal/queue"
)

// Configuration is a KubeSchedulerConfiguration with its defaults filled in.
type Configuration struct {
	Kubeconfig     string
	InitialBackoff time.Duration
	MaxBackoff     time.Duration
	LeaderElection componentbaseconfig.LeaderElectionConfiguration
	Profiles       []configv1.KubeSchedulerProfile
	Extenders      []configv1.Extender
	Profiling      bool
	// DelayCache has a standby watch only once it leads.
	DelayCache bool
	// ContentionProfiling records waiting for locks and channels.
	ContentionProfiling bool
	// Notes name parts of the file that mean something else here, or nothing.
	// Build adds to them.
	Notes []string

	source source
}

const (
	apiVersion = "kubescheduler.config.k8s.io/v1"
	kind       = "KubeSchedulerConfiguration"
)

// Default is the configuration of a scheduler without a file.
func Default() (*Configuration, error) {
	return complete(&configv1.KubeSchedulerConfiguration{})
}

// Load reads the file at path.
func Load(path string) (*Configuration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read scheduler configuration: %w", err)
	}
	c, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("scheduler configuration %s: %w", path, err)
	}
	return c, nil
}

// parse reads YAML or JSON. Errors say in which line.
func parse(data []byte) (*Configuration, error) {
	file := &configv1.KubeSchedulerConfiguration{}
	from := newSource(data)
	if err := decode(data, file); err != nil {
		return nil, from.locate("", err)
	}
	if file.APIVersion != apiVersion || file.Kind != kind {
		return nil, from.locate("apiVersion", fmt.Errorf("apiVersion %q, kind %q: only %s, %s is supported",
			file.APIVersion, file.Kind, apiVersion, kind))
	}
	c, err := complete(file)
	if err != nil {
		return nil, from.locate("", err)
	}
	c.source = from
	return c, nil
}

// Locate prefixes an error that begins with a field with that field's line.
func (c *Configuration) Locate(err error) error { return c.source.locate("", err) }

// decode is strict: unknown and duplicate fields are errors, and so is anything
// after the document, which would not be read.
func decode(data []byte, into any) error {
	if err := alone(data); err != nil {
		return err
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return err
	}
	err = core.DecodeStrict(asJSON, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field == "" {
		return fmt.Errorf("expected an object, got JSON type %s", wrong.Value)
	}
	if wrong != nil {
		return fmt.Errorf("%s: a %s can't be a %s", wrong.Field, wrong.Value, wrong.Type)
	}
	return err
}

// invalid is an error in kube-scheduler's form, and mostly with its text.
func invalid(name string, value any, why string) error {
	return field.Invalid(field.NewPath(name), value, why)
}

// seconds is the value of a field, if given. More than a century counts as a
// mistake.
func seconds(name string, given *int64, otherwise time.Duration) (time.Duration, error) {
	if given == nil {
		return otherwise, nil
	}
	switch {
	case *given <= 0:
		return 0, invalid(name, *given, "must be greater than 0")
	case *given > 100*366*24*3600:
		return 0, invalid(name, *given, "is more than a century")
	}
	return time.Duration(*given) * time.Second, nil
}

// complete rejects an invalid file, and sets upstream's defaults.
func complete(file *configv1.KubeSchedulerConfiguration) (*Configuration, error) {
	if err := errors.Join(faults(file)...); err != nil {
		return nil, err
	}
	c := &Configuration{
		Kubeconfig:          file.ClientConnection.Kubeconfig,
		LeaderElection:      file.LeaderElection,
		Profiles:            file.Profiles,
		Extenders:           file.Extenders,
		Profiling:           ptr.Deref(file.EnableProfiling, true),
		DelayCache:          file.DelayCacheUntilActive,
		Notes:               notes(file),
		ContentionProfiling: ptr.Deref(file.EnableContentionProfiling, false),
	}
	if err := c.backoff(file); err != nil {
		return nil, err
	}
	if share := file.PercentageOfNodesToScore; share != nil && (*share < 0 || *share > 100) {
		return nil, invalid("percentageOfNodesToScore", *share, "not in valid range [0-100]")
	}
	defaultElection(&c.LeaderElection)
	if err := electionError(&c.LeaderElection); err != nil {
		return nil, err
	}
	return c, c.completeProfiles(file.PercentageOfNodesToScore)
}

// completeProfiles names the profiles, and gives them the share of nodes to score that
// holds for those without one.
func (c *Configuration) completeProfiles(share *int32) error {
	if len(c.Profiles) == 0 {
		c.Profiles = []configv1.KubeSchedulerProfile{{}}
	}
	seen := map[string]bool{}
	for i := range c.Profiles {
		p := &c.Profiles[i]
		if p.SchedulerName == nil {
			if len(c.Profiles) > 1 {
				return field.Required(nameAt(i), "there are several profiles")
			}
			name := core.DefaultSchedulerName
			p.SchedulerName = &name
		}
		switch {
		case *p.SchedulerName == "":
			return field.Required(nameAt(i), "")
		case seen[*p.SchedulerName]:
			return field.Duplicate(nameAt(i), *p.SchedulerName)
		}
		seen[*p.SchedulerName] = true
		if p.PercentageOfNodesToScore == nil {
			p.PercentageOfNodesToScore = share
		}
		if own := p.PercentageOfNodesToScore; own != nil && (*own < 0 || *own > 100) {
			return invalid(fmt.Sprintf("profiles[%d].percentageOfNodesToScore", i), *own, "not in valid range [0-100]")
		}
		if set := queueSortOf(p); !equality.Semantic.DeepEqual(set, queueSortOf(&c.Profiles[0])) { // they share one queue
			return invalid(fmt.Sprintf("profiles[%d].plugins.queueSort", i), set, "must be the same for all profiles")
		}
	}
	return nil
}

func queueSortOf(p *configv1.KubeSchedulerProfile) (set configv1.PluginSet) {
	if p.Plugins != nil {
		set = p.Plugins.QueueSort
	}
	return set
}

func nameAt(profile int) *field.Path {
	return field.NewPath("profiles").Index(profile).Child("schedulerName")
}

func (c *Configuration) backoff(file *configv1.KubeSchedulerConfiguration) (err error) {
	if c.InitialBackoff, err = seconds("podInitialBackoffSeconds", file.PodInitialBackoffSeconds, queue.DefaultBackoff.Initial); err != nil {
		return err
	}
	if c.MaxBackoff, err = seconds("podMaxBackoffSeconds", file.PodMaxBackoffSeconds, queue.DefaultBackoff.Max); err != nil {
		return err
	}
	if c.MaxBackoff < c.InitialBackoff {
		return invalid("podMaxBackoffSeconds", int64(c.MaxBackoff.Seconds()), "must be greater than or equal to PodInitialBackoffSeconds")
	}
	return nil
}

func faults(file *configv1.KubeSchedulerConfiguration) (errs []error) {
	if file.Parallelism != nil && *file.Parallelism <= 0 {
		errs = append(errs, invalid("parallelism", *file.Parallelism, "should be an integer value greater than zero"))
	}
	if burst := file.ClientConnection.Burst; burst < 0 {
		errs = append(errs, invalid("clientConnection.burst", burst, "must be non-negative"))
	}
	if lock := file.LeaderElection.ResourceLock; lock != "" && lock != "leases" {
		errs = append(errs, invalid("leaderElection.resourceLock", lock, `resourceLock value must be "leases"`))
	}
	return errs
}

// notes names the parts of a file that are accepted and have no effect here.
func notes(file *configv1.KubeSchedulerConfiguration) []string {
	var notes []string
	client := file.ClientConnection
	if file.Parallelism != nil {
		notes = append(notes, "parallelism: nodes are evaluated one at a time")
	}
	if client.QPS > 0 || client.Burst > 0 {
		notes = append(notes, "clientConnection.qps and burst: this program does not limit its own request rate; the API server's limits apply")
	}
	isJSON := func(contentType string) bool { return contentType == "" || contentType == runtime.ContentTypeJSON }
	if !isJSON(client.ContentType) || !isJSON(client.AcceptContentTypes) {
		notes = append(notes, "clientConnection.contentType and acceptContentTypes: this program always uses "+runtime.ContentTypeJSON)
	}
	return notes
}

// electionError is for times with which no election can work. Flags may override
// them later, and are checked then.
func electionError(e *componentbaseconfig.LeaderElectionConfiguration) error {
	if !*e.LeaderElect {
		return nil
	}
	if err := leader.CheckTimes(e.LeaseDuration.Duration, e.RenewDeadline.Duration, e.RetryPeriod.Duration); err != nil {
		return fmt.Errorf("leaderElection.%w", err)
	}
	return nil
}

func defaultElection(e *componentbaseconfig.LeaderElectionConfiguration) {
	if e.LeaderElect == nil {
		elect := true
		e.LeaderElect = &elect
	}
	if e.LeaseDuration.Duration == 0 {
		e.LeaseDuration.Duration = leader.DefaultLeaseDuration
	}
	if e.RenewDeadline.Duration == 0 {
		e.RenewDeadline.Duration = leader.DefaultRenewDeadline
	}
	if e.RetryPeriod.Duration == 0 {
		e.RetryPeriod.Duration = leader.DefaultRetryPeriod
	}
	if e.ResourceLock == "" {
		e.ResourceLock = "leases"
	}
	if e.ResourceName == "" {
		e.ResourceName = "kube-scheduler"
	}
	if e.ResourceNamespace == "" {
		e.ResourceNamespace = core.NamespaceSystem
	}
}
