package hollow

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestValidate(t *testing.T) {
	good := DefaultOptions()
	good.Kubeconfig = "k"
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		"--nodes=0":      func(o *Options) { o.Nodes = 0 },
		"--nodes=16385":  func(o *Options) { o.Nodes = maxNodes + 1 },
		"--kubeconfig":   func(o *Options) { o.Kubeconfig = "" },
		"positive":       func(o *Options) { o.Memory = resource.MustParse("-1") },
		"--max-pods=255": func(o *Options) { o.Pods = 255 },
		"negative":       func(o *Options) { o.Stop = -1 },
	} {
		o := good
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

// The last node has an address of its own, like all before it.
func TestAddresses(t *testing.T) {
	if last := plus(nodeAddresses, maxNodes-1); last.String() != "10.32.64.0" {
		t.Errorf("address %s", last)
	}
	if last := plus(podAddresses, (maxNodes-1)<<8); last.String() != "10.127.255.0" {
		t.Errorf("pods' addresses %s", last)
	}
}
