package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"sigs.k8s.io/yaml"
)

// settings are the flags that decide about a field of the kubelet's configuration, and what
// a file without it means.
var settings = []struct {
	flag, field string
	usual       any
}{
	{"cri-socket", "containerRuntimeEndpoint", nil},
	{"kubelet-port", "port", float64(usualPort)},
	{"cluster-dns", "clusterDNS", nil},
	{"cluster-domain", "clusterDomain", ""},
	{"server-tls-bootstrap", "serverTLSBootstrap", false},
}

// notContradicted returns an error if the configuration that an earlier join has left, which is
// kept, says something else than the flags that are given now: who corrects a flag by
// joining again would wonder why nothing changes. What flags don't say is the file's.
func (o *Options) notContradicted() error {
	there, err := os.ReadFile(o.configFile())
	if errors.Is(err, os.ErrNotExist) || err == nil && len(there) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	var kept, wanted map[string]any
	if err := yaml.Unmarshal(there, &kept); err != nil {
		return fmt.Errorf("%s: %w", o.configFile(), err)
	}
	configuration, err := o.kubeletConfiguration()
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(configuration, &wanted); err != nil {
		return err
	}
	var errs []error
	for _, s := range settings {
		has, there := kept[s.field]
		if !there {
			has = s.usual
		}
		if o.Given == nil || !o.Given(s.flag) || reflect.DeepEqual(has, wanted[s.field]) {
			continue
		}
		errs = append(errs,
			fmt.Errorf("%s exists from an earlier join with %s, which differs from --%s=%s: change it in the file, or remove the "+
				"earlier join with `kctl reset`",
				o.configFile(), described(s.field, kept), s.flag, shown(wanted[s.field])))
	}
	return errors.Join(errs...)
}

func described(field string, in map[string]any) string {
	value, there := in[field]
	if !there {
		return "no " + field
	}
	return field + ": " + shown(value)
}

func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
