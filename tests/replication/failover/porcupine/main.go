// Whether recorded histories can be explained, by Porcupine: one history a line of the file, as
// check_histories.py reads them. Prints the key of each that is refused, and a figure.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

// Longer than the slowest history takes by far; what is not decided by then counts as refused.
const patience = 60 * time.Second

type call struct {
	Call   int64         `json:"call"`
	Return *int64        `json:"return"`
	Words  []interface{} `json:"words"`
	Reply  interface{}   `json:"reply"`
}

type history struct {
	Kind  string `json:"kind"`
	Key   string `json:"key"`
	Calls []call `json:"calls"`
}

func operations(of history) []porcupine.Operation {
	found := make([]porcupine.Operation, 0, len(of.Calls))
	for number, each := range of.Calls {
		end := int64(math.MaxInt64)
		if each.Return != nil {
			end = *each.Return
		}
		asked := request{words: each.Words, called: each.Call, ended: end}
		var reply interface{} = each.Reply
		if each.Return == nil {
			reply = lost{}
		}
		found = append(found, porcupine.Operation{
			ClientId: number, Input: asked, Call: each.Call, Output: reply, Return: end})
	}
	return found
}

func run(path string) (int, int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 1<<20)
	count, refused := 0, 0
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) == 0 {
			return count, refused, nil
		}
		if err != nil {
			return count, refused, err
		}
		var read history
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		if err := decoder.Decode(&read); err != nil {
			return count, refused, err
		}
		model, known := modelOf(read.Kind)
		if !known {
			return count, refused, fmt.Errorf("no model of %s", read.Kind)
		}
		count++
		result := porcupine.CheckOperationsTimeout(model, operations(read), patience)
		if result != porcupine.Ok {
			refused++
			fmt.Printf("%s %s: %s\n", read.Kind, read.Key, result)
		}
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: porcupine FILE")
		os.Exit(2)
	}
	count, refused, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("porcupine: %d histories, %d refused\n", count, refused)
	if refused != 0 {
		os.Exit(1)
	}
}
