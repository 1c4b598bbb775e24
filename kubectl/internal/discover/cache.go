package discover

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"
)

// Cache is the file in which a server's resources are remembered. The zero
// Cache remembers nothing.
type Cache struct {
	Dir   string
	Clock clock.PassiveClock
}

// expiry is how long a file is trusted, as in kubectl. What is missing from it
// is asked for anyway; only what a server no longer serves is noticed late.
const expiry = 6 * time.Hour

const cacheFile = "kctl-resources.json"

type cachedResources struct {
	WrittenAt time.Time  `json:"writtenAt"`
	Resources []Resource `json:"resources"`
}

// read returns nothing if the file is missing, old or broken: in each case the
// server is asked.
func (c Cache) read() ([]Resource, bool) {
	if c.Dir == "" {
		return nil, false
	}
	data, err := os.ReadFile(filepath.Join(c.Dir, cacheFile))
	if err != nil {
		return nil, false
	}
	var content cachedResources
	if err := json.Unmarshal(data, &content); err != nil || len(content.Resources) == 0 {
		return nil, false
	}
	age := c.Clock.Since(content.WrittenAt)
	return content.Resources, age >= 0 && age < expiry
}

// write replaces the file in one step. If that fails, commands are slower but
// not wrong, so the error is not reported.
func (c Cache) write(resources []Resource) {
	if c.Dir == "" {
		return
	}
	data, err := json.Marshal(cachedResources{WrittenAt: c.Clock.Now(), Resources: resources})
	if err != nil || os.MkdirAll(c.Dir, 0o750) != nil {
		return
	}
	file, err := os.CreateTemp(c.Dir, cacheFile+".*")
	if err != nil {
		return
	}
	_, err = file.Write(data)
	if closeErr := file.Close(); err != nil || closeErr != nil ||
		os.Rename(file.Name(), filepath.Join(c.Dir, cacheFile)) != nil {
		_ = os.Remove(file.Name())
	}
}
