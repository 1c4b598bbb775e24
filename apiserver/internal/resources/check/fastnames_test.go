package check

import (
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestPlainNames compares the fast check with upstream's functions, for all
// short names, and for long ones near the limits.
func TestPlainNames(t *testing.T) {
	const alphabet = "aZ0-._/ é"
	var names []string
	var grow func(name string, left int)
	grow = func(name string, left int) {
		names = append(names, name)
		for _, r := range alphabet {
			if left > 0 {
				grow(name+string(r), left-1)
			}
		}
	}
	grow("", 4)
	for range 1000 {
		long := strings.Repeat("a", rand.IntN(300))
		cut := rand.IntN(len(long) + 1)
		names = append(names, long, long[:cut]+"/"+long[cut:], long[:cut]+"."+long[cut:], long[:cut/2]+"."+long[cut/2:cut]+"/"+long[cut:])
	}
	for _, name := range names {
		for what, c := range map[string]struct{ plain, right bool }{
			"label":     {isDNSLabel(name), len(validation.IsDNS1123Label(name)) == 0},
			"subdomain": {isDNSSubdomain(name), len(validation.IsDNS1123Subdomain(name)) == 0},
			"key":       {isLabelKey(name), len(validation.IsQualifiedName(name)) == 0},
		} {
			if c.plain != c.right {
				t.Errorf("%q as a %s is plain: %t, right: %t", name, what, c.plain, c.right)
			}
		}
	}
}
