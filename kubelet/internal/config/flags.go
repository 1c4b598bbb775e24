package config

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"kctl/kubelet/internal/cgroup"
	"kctl/proto/daemon"
)

// AddFlags binds the flags to c, with its values as their defaults.
func (c *Config) AddFlags(fs *pflag.FlagSet) {
	for _, o := range c.options(&kubeletv1beta1.KubeletConfiguration{}) {
		if o.usage != "" {
			o.addFlag(fs)
		}
	}
	c.Serving.TLS.AddFlags(fs)
	c.Log.AddFlags(fs)
	daemon.AddUnused(fs, daemon.UnusedLogging...)
	daemon.AddUnused(fs, unused...)
}

func (o option) addFlag(fs *pflag.FlagSet) {
	switch v := o.target.(type) {
	case *string:
		fs.StringVar(v, o.flag, *v, o.usage)
	case *bool:
		fs.BoolVar(v, o.flag, *v, o.usage)
	case *int32:
		fs.Int32Var(v, o.flag, *v, o.usage)
	case *int64:
		fs.Int64Var(v, o.flag, *v, o.usage)
	case *time.Duration:
		fs.DurationVar(v, o.flag, *v, o.usage)
	case *[]string:
		fs.StringSliceVar(v, o.flag, *v, o.usage)
	case *map[string]string:
		daemon.PairsVar(fs, v, o.flag, "", o.usage)
	case pflag.Value:
		fs.Var(v, o.flag, o.usage)
	default:
		panic("--" + o.flag + " is of a type that no flag has")
	}
}

// pairs reads "a=b,c=d".
func pairs(text, separator string, take func(key, value string) error) error {
	return eachPair(text, separator, false, take)
}

// eachPair also accepts a key without a value, if that is allowed.
func eachPair(text, separator string, alone bool, take func(key, value string) error) error {
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, separator)
		if !ok && !alone {
			return fmt.Errorf("%q is not key%svalue", part, separator)
		}
		if err := take(strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
			return err
		}
	}
	return nil
}

type labelsFlag map[string]string

func (f *labelsFlag) String() string { return joined(*f, "=") }
func (f *labelsFlag) Type() string   { return "labels" }
func (f *labelsFlag) Set(text string) error {
	if *f == nil {
		*f = labelsFlag{}
	}
	return eachPair(text, "=", true, func(key, value string) error {
		if kubernetesLabel(key) && !kubeletapis.IsKubeletLabel(key) {
			return fmt.Errorf("label %s: of the labels of kubernetes.io and k8s.io a kubelet may only give those below %s and %s",
				key, strings.Join(kubeletapis.KubeletLabelNamespaces(), " and "), strings.Join(kubeletapis.KubeletLabels(), ", "))
		}
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			return fmt.Errorf("label %s=%s: %s", key, value, strings.Join(problems, "; "))
		}
		(*f)[key] = value
		return nil
	})
}

// kubernetesLabel says that a label is one of Kubernetes' own.
func kubernetesLabel(key string) bool {
	namespace, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(domain string) bool {
		return namespace == domain || strings.HasSuffix(namespace, "."+domain)
	}) && strings.Contains(key, "/")
}

type taintsFlag []corev1.Taint

func (f *taintsFlag) String() string { return "" }
func (f *taintsFlag) Type() string   { return "taints" }
func (f *taintsFlag) Set(text string) error {
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		rest, effect, _ := strings.Cut(part, ":")
		key, value, _ := strings.Cut(rest, "=")
		taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		if err := checkTaint(&taint); err != nil {
			return fmt.Errorf("%q is not key=value:effect: %w", part, err)
		}
		if hasTaint(*f, &taint) {
			return fmt.Errorf("taint %q: there is another with the key %s and the effect %s", part, key, effect)
		}
		*f = append(*f, taint)
	}
	return nil
}

// hasTaint says that there is one with the same key and effect, of which a node may have one only.
func hasTaint(taints []corev1.Taint, taint *corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(taint) })
}

// checkTaint refuses a taint with which the API server would refuse the node.
func checkTaint(taint *corev1.Taint) error {
	if problems := append(validation.IsQualifiedName(taint.Key), validation.IsValidLabelValue(taint.Value)...); len(problems) > 0 {
		return fmt.Errorf("taint %s=%s: %s", taint.Key, taint.Value, strings.Join(problems, "; "))
	}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return nil
	}
	return fmt.Errorf("taint %s: the effect %q is not one of NoSchedule, PreferNoSchedule and NoExecute", taint.Key, taint.Effect)
}

type headerFlag http.Header

func (f *headerFlag) String() string { return "" } // they may be credentials
func (f *headerFlag) Type() string   { return "headers" }
func (f *headerFlag) Set(text string) error {
	if *f == nil {
		*f = headerFlag{}
	}
	return pairs(text, ":", func(key, value string) error {
		http.Header(*f).Add(key, value)
		return nil
	})
}

type resourcesFlag corev1.ResourceList

func (f *resourcesFlag) String() string {
	texts := map[string]string{}
	for name, quantity := range *f {
		texts[string(name)] = quantity.String()
	}
	return joined(texts, "=")
}
func (f *resourcesFlag) Type() string { return "resources" }
func (f *resourcesFlag) Set(text string) error {
	if *f == nil {
		*f = resourcesFlag{}
	}
	return pairs(text, "=", func(key, value string) error { return setResource(corev1.ResourceList(*f), key, value) })
}

func setResource(list corev1.ResourceList, key, value string) error {
	quantity, err := resource.ParseQuantity(value)
	if err != nil || quantity.Sign() < 0 {
		return fmt.Errorf("%s=%s is not a quantity", key, value)
	}
	switch name := corev1.ResourceName(key); name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, cgroup.Processes:
		list[name] = quantity
		return nil
	}
	return fmt.Errorf("%s: only cpu, memory, ephemeral-storage and pid can be reserved", key)
}

// pairsFlag is a list of pairs, "thresholds" (signal<value) or "settings"
// (signal=value). The first use of the flag replaces the default, even with an empty
// list; further ones add to it.
type pairsFlag struct {
	into            *map[string]string
	separator, kind string
	given           bool
}

func thresholdsFlag(into *map[string]string) *pairsFlag {
	return &pairsFlag{into: into, separator: "<", kind: "thresholds"}
}

func settingsFlag(into *map[string]string) *pairsFlag {
	return &pairsFlag{into: into, separator: "=", kind: "settings"}
}

func (f *pairsFlag) String() string {
	if f.into == nil {
		return ""
	}
	return joined(*f.into, f.separator)
}
func (f *pairsFlag) Type() string { return f.kind }
func (f *pairsFlag) Set(text string) error {
	if !f.given {
		*f.into, f.given = map[string]string{}, true
	}
	return pairs(text, f.separator, func(key, value string) error {
		(*f.into)[key] = value
		return nil
	})
}

// joined formats a list of pairs as Set accepts it, in the order of the keys.
func joined(values map[string]string, separator string) string {
	pairs := make([]string, 0, len(values))
	for key, value := range values {
		pairs = append(pairs, key+separator+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

type quantityFlag resource.Quantity

func (f *quantityFlag) String() string { return (*resource.Quantity)(f).String() }
func (f *quantityFlag) Type() string   { return "quantity" }
func (f *quantityFlag) Set(text string) error {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("%q is not a quantity", text)
	}
	*f = quantityFlag(quantity)
	return nil
}

type secondsFlag time.Duration

func (f *secondsFlag) String() string { return fmt.Sprint(int(time.Duration(*f).Seconds())) }
func (f *secondsFlag) Type() string   { return "seconds" }
func (f *secondsFlag) Set(text string) error {
	seconds, err := time.ParseDuration(text + "s")
	if err != nil {
		return fmt.Errorf("%q is not a number of seconds", text)
	}
	*f = secondsFlag(seconds)
	return nil
}
