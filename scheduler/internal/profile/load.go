package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
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
	// ContentionProfiling has those recorded who wait for locks and channels.
	ContentionProfiling bool
	// Notes say what became of parts of the file that mean something else here, or
	// nothing. Build adds to them.
	Notes []string

	source source
}

const (
	apiVersion = "kubescheduler.config.k8s.io/v1"
	kind       = "KubeSchedulerConfiguration"
)

// Default is the configuration of a scheduler that was given none.
func Default() (*Configuration, error) {
	return complete(&configv1.KubeSchedulerConfiguration{})
}

// Load reads the file at path.
func Load(path string) (*Configuration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read scheduler configuration: %w", err)
	}
	c, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("scheduler configuration %s: %w", path, err)
	}
	return c, nil
}

// Parse reads YAML or JSON. Errors say in which line.
func Parse(data []byte) (*Configuration, error) {
	file := &configv1.KubeSchedulerConfiguration{}
	from := newSource(data)
	if err := decode(data, file); err != nil {
		return nil, from.locate("", err)
	}
	if file.APIVersion != apiVersion || file.Kind != kind {
		return nil, from.locate("apiVersion", fmt.Errorf("apiVersion %q, kind %q: only %s, %s is supported", file.APIVersion, file.Kind, apiVersion, kind))
	}
	c, err := complete(file)
	if err != nil {
		return nil, from.locate("", err)
	}
	c.source = from
	return c, nil
}

// decode is strict: fields that are not known, or there twice, are errors.
func decode(data []byte, into any) error {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return err
	}
	strict, err := kjson.UnmarshalStrict(asJSON, into)
	if err == nil {
		return errors.Join(strict...)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s: a %s can't be a %s", wrong.Field, wrong.Value, wrong.Type)
	}
	return err
}

// complete refuses what isn't supported and fills in upstream's defaults.
func complete(file *configv1.KubeSchedulerConfiguration) (*Configuration, error) {
	if err := errors.Join(unsupportedFields(file)...); err != nil {
		return nil, err
	}
	c := &Configuration{
		Kubeconfig:     file.ClientConnection.Kubeconfig,
		InitialBackoff: time.Second, MaxBackoff: 10 * time.Second,
		LeaderElection: file.LeaderElection, Profiles: file.Profiles, Extenders: file.Extenders,
		Profiling: file.EnableProfiling == nil || *file.EnableProfiling, Notes: notes(file.ClientConnection),
		ContentionProfiling: file.EnableContentionProfiling != nil && *file.EnableContentionProfiling,
	}
	if s := file.PodInitialBackoffSeconds; s != nil {
		c.InitialBackoff = time.Duration(*s) * time.Second
	}
	if s := file.PodMaxBackoffSeconds; s != nil {
		c.MaxBackoff = time.Duration(*s) * time.Second
	}
	if c.InitialBackoff <= 0 || c.MaxBackoff < c.InitialBackoff {
		return nil, fmt.Errorf("podInitialBackoffSeconds: it must be positive and podMaxBackoffSeconds no smaller, not %v and %v",
			c.InitialBackoff.Seconds(), c.MaxBackoff.Seconds())
	}
	defaultElection(&c.LeaderElection)
	if len(c.Profiles) == 0 {
		c.Profiles = []configv1.KubeSchedulerProfile{{}}
	}
	seen := map[string]bool{}
	for i := range c.Profiles {
		p := &c.Profiles[i]
		if p.SchedulerName == nil {
			if len(c.Profiles) > 1 {
				return nil, fmt.Errorf("profiles[%d].schedulerName: needed where there are several profiles", i)
			}
			name := core.DefaultSchedulerName
			p.SchedulerName = &name
		}
		if *p.SchedulerName == "" || seen[*p.SchedulerName] {
			return nil, fmt.Errorf("profiles[%d].schedulerName: %q is empty or not unique", i, *p.SchedulerName)
		}
		seen[*p.SchedulerName] = true
		if p.PercentageOfNodesToScore == nil {
			p.PercentageOfNodesToScore = file.PercentageOfNodesToScore
		}
		if share := p.PercentageOfNodesToScore; share != nil && (*share < 0 || *share > 100) {
			return nil, fmt.Errorf("profiles[%d].percentageOfNodesToScore: %d is not within 0 and 100", i, *share)
		}
	}
	return c, nil
}

func unsupportedFields(file *configv1.KubeSchedulerConfiguration) []error {
	var errs []error
	refuse := func(given bool, field, why string) {
		if given {
			errs = append(errs, fmt.Errorf("%s: not supported: %s", field, why))
		}
	}
	refuse(file.DelayCacheUntilActive, "delayCacheUntilActive", "a standby always watches, so that it can take over at once")
	if file.Parallelism != nil && *file.Parallelism <= 0 {
		errs = append(errs, fmt.Errorf("parallelism: %d is not positive", *file.Parallelism))
	}
	client := file.ClientConnection
	if client.Burst < 0 {
		errs = append(errs, fmt.Errorf("clientConnection.burst: %d is negative", client.Burst))
	}
	lock := file.LeaderElection.ResourceLock
	refuse(lock != "" && lock != "leases", "leaderElection.resourceLock", fmt.Sprintf("%q; only leases", lock))
	return errs
}

// notes say what parts of a file are taken, and change nothing here.
func notes(client componentbaseconfig.ClientConnectionConfiguration) []string {
	var notes []string
	if client.QPS > 0 || client.Burst > 0 {
		notes = append(notes, "clientConnection.qps and burst: requests are not held back here; the API server's limits do that")
	}
	isJSON := func(contentType string) bool { return contentType == "" || contentType == runtime.ContentTypeJSON }
	if !isJSON(client.ContentType) || !isJSON(client.AcceptContentTypes) {
		notes = append(notes, "clientConnection.contentType and acceptContentTypes: "+runtime.ContentTypeJSON+" is spoken")
	}
	return notes
}

func defaultElection(e *componentbaseconfig.LeaderElectionConfiguration) {
	if e.LeaderElect == nil {
		elect := true
		e.LeaderElect = &elect
	}
	if e.LeaseDuration.Duration == 0 {
		e.LeaseDuration.Duration = 15 * time.Second
	}
	if e.RenewDeadline.Duration == 0 {
		e.RenewDeadline.Duration = 10 * time.Second
	}
	if e.RetryPeriod.Duration == 0 {
		e.RetryPeriod.Duration = 2 * time.Second
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
