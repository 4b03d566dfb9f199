package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// What the suite has its group do: the leader is killed again and again while one client claims one
// key after the other. See tests/clients/group_target.py.

const (
	goesOn       = 10 * time.Second
	claimsEnough = 20 // so many show that a client goes on
)

var input = bufio.NewReader(os.Stdin)

// What the runner has done, or found.
func need(words ...string) (string, error) {
	fmt.Println("need", strings.Join(words, " "))
	line, err := input.ReadString('\n')
	if err != nil {
		return "", err
	}
	found, isDone := strings.CutPrefix(strings.TrimSpace(line), "done")
	if !isDone {
		return "", fmt.Errorf("%v: %s", words, line)
	}
	return strings.TrimSpace(found), nil
}

func needNumber(words ...string) (int, error) {
	found, err := need(words...)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(found)
}

type writer struct {
	prefix string
	// What the key had before, or "".
	claim func(key, value string) (string, error)

	mutex  sync.Mutex
	times  []time.Time // of acknowledgements, one for each key
	isOver bool
	wrong  error
	done   sync.WaitGroup
}

func (w *writer) pair(number int) (string, string) {
	return fmt.Sprintf("%s%d", w.prefix, number), fmt.Sprintf("value of %d", number)
}

func (w *writer) state() (int, bool, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.times), w.isOver, w.wrong
}

func (w *writer) run() {
	defer w.done.Done()
	for {
		number, isOver, wrong := w.state()
		if isOver || wrong != nil {
			return
		}
		key, value := w.pair(number)
		owner, err := w.claim(key, value)
		if err != nil { // asked again with the same words
			time.Sleep(5 * time.Millisecond)
			continue
		}
		w.mutex.Lock()
		if owner == "" || owner == value {
			w.times = append(w.times, time.Now())
		} else {
			w.wrong = fmt.Errorf("%s is %s, not %s", key, owner, value)
		}
		w.mutex.Unlock()
		time.Sleep(time.Millisecond)
	}
}

func (w *writer) goesOn() error {
	before, _, _ := w.state()
	end := time.Now().Add(goesOn)
	for {
		number, _, wrong := w.state()
		if wrong != nil || number >= before+claimsEnough {
			return wrong
		}
		if time.Now().After(end) {
			return fmt.Errorf("it does not go on within %v", goesOn)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *writer) disturb(name, fault string) error {
	began := time.Now()
	if _, err := need(fault); err != nil {
		return err
	}
	if err := w.goesOn(); err != nil {
		return err
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	longest := time.Duration(0)
	for i := len(w.times) - 1; i > 0 && w.times[i].After(began); i-- {
		longest = max(longest, w.times[i].Sub(w.times[i-1]))
	}
	fmt.Printf("figure %s %d\n", name, longest.Milliseconds())
	return nil
}

func (w *writer) kills(count int) error {
	w.done.Add(1)
	go w.run()
	if err := w.goesOn(); err != nil {
		return err
	}
	for range count {
		if err := w.disturb("kill", "kill-leader"); err != nil {
			return err
		}
		if _, err := need("restart"); err != nil {
			return err
		}
		if err := w.goesOn(); err != nil {
			return err
		}
	}
	return nil
}

// What the key has, though the group may change its leader meanwhile.
func patient(read func(key string) (string, error), key string) (string, error) {
	end := time.Now().Add(goesOn)
	for {
		found, err := read(key)
		if err == nil || errors.Is(err, redis.Nil) || time.Now().After(end) {
			return found, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *writer) nothingIsLost(read func(key string) (string, error)) error {
	w.mutex.Lock()
	w.isOver = true
	w.mutex.Unlock()
	w.done.Wait()
	acknowledged := len(w.times)
	for i := range acknowledged {
		key, value := w.pair(i)
		found, err := patient(read, key)
		if err != nil || found != value {
			return fmt.Errorf("%s of %d is lost: %q, %v", key, acknowledged, found, err)
		}
	}
	count, err := needNumber("count", w.prefix)
	if err != nil {
		return err
	}
	// The last one may have been asked for without an answer.
	if count != acknowledged && count != acknowledged+1 {
		return fmt.Errorf("%d keys, %d acknowledged", count, acknowledged)
	}
	fmt.Printf("figure acknowledged %d\n", acknowledged)
	return nil
}

func outages(prefix string, claim func(key, value string) (string, error),
	read func(key string) (string, error)) {
	kills, err := strconv.Atoi(os.Getenv("SEMEL_TEST_KILLS"))
	w := &writer{prefix: prefix, claim: claim}
	check(fmt.Sprintf("goes on when the leader is killed, %d times", kills), func() error {
		return errors.Join(err, w.kills(kills))
	})
	check("goes on when another node is made the leader", func() error {
		return w.disturb("transfer", "transfer")
	})
	check("has lost nothing that was acknowledged, and counts agree", func() error {
		return w.nothingIsLost(read)
	})
}

func check(name string, work func() error) {
	if err := work(); err != nil {
		fmt.Printf("failed %s: %q\n", name, err)
	} else {
		fmt.Printf("ok %s\n", name)
	}
}
